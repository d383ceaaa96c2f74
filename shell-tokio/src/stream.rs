use std::fmt;

use cenote_shell::runtime::BoxedStream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::compat::TokioAsyncReadCompatExt;

/// A connected stream of the application's, for
/// [`MongoConnector::establish`](cenote_shell::connection::MongoConnector::establish): made from any tokio
/// stream, such as one through a tunnel or in a simulated network.
pub struct OpenStream(BoxedStream);

impl OpenStream {
    pub(crate) fn into_inner(self) -> BoxedStream {
        self.0
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> From<S> for OpenStream {
    fn from(stream: S) -> Self {
        Self(Box::new(stream.compat()))
    }
}

impl fmt::Debug for OpenStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenStream").finish_non_exhaustive()
    }
}
