//! The harness of the black-box tests: daemons, datastores and clients as a test needs them.
