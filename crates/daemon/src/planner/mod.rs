mod advice;
pub(crate) mod drs;
pub(crate) mod plans;
pub(crate) mod site;
pub(crate) mod storage_drs;
