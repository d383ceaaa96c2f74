//! Servers and clients that were written by others. `.ci/clients` installs what they need.

mod official_driver;
mod pymongo;
mod secantus;
