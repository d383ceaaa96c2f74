//! PyMongo and our client, connected to the same endpoints: they must find the same topology, in every shape that a
//! deployment can take. `.ci/clients` installs PyMongo and runs this.

mod changes;
mod compare;
mod ours;
mod process;
mod shapes;
mod srv;
mod world;
