//! The data path: reactor, datastores, exports, the mirror's driver.
