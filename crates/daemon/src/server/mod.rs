pub(crate) mod http;
mod survey;
