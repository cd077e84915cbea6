//! Pipes, terminals and other files whose data may never come.
//!
//! # Problem
//! Opening a named pipe waits for a writer, and reading waits for data; neither can be
//! interrupted.
//!
//! # Method
//! A thread of its own opens and reads the file. [`PipeReader`] takes blocks from it and
//! returns [`io::ErrorKind::WouldBlock`] if none comes for a while, so that its user can poll a monitor
//! and try again. If reading is given up, the thread ends with the next data or when the writer ends.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// The most that is read at a time, the size of a pipe's buffer on Linux.
const BLOCK_BYTES: usize = 1 << 16;

/// Blocks that are read in advance.
const N_BLOCKS: usize = 16;

/// How long a read waits before it returns.
const POLL: Duration = Duration::from_millis(20);

/// The data of a pipe.
pub(super) struct PipeReader {
    blocks: Receiver<io::Result<Vec<u8>>>,
    /// The current block and the number of its bytes that have been returned.
    block: Vec<u8>,
    position: usize,
}

impl PipeReader {
    /// Returns true if opening or reading the file may wait for another process.
    pub(super) fn is_for(path: &Path) -> bool {
        let metadata = path.metadata();
        metadata.is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
    }

    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(N_BLOCKS);
        let name = "onefold-pipe".to_owned();
        thread::Builder::new()
            .name(name)
            .spawn(move || read_blocks(&path, &sender))?;
        Ok(Self {
            blocks,
            block: Vec::new(),
            position: 0,
        })
    }
}

/// Sends all blocks and the first error; an end is the end of the channel.
fn read_blocks(path: &Path, sender: &SyncSender<io::Result<Vec<u8>>>) {
    let mut buffer = vec![0; BLOCK_BYTES];
    let mut read = |file: &mut File| loop {
        match file.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read.map(|n| buffer[..n].to_vec()),
        }
    };
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            // Fails if reading was given up, as below.
            let _ = sender.send(Err(error));
            return;
        }
    };
    loop {
        let block = read(&mut file);
        let is_last = block.as_ref().map_or(true, Vec::is_empty);
        if sender.send(block).is_err() || is_last {
            return;
        }
    }
}

impl Read for PipeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position == self.block.len() {
            self.block = match self.blocks.recv_timeout(POLL) {
                Ok(block) => block?,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::WouldBlock.into()),
            };
            self.position = 0;
        }
        let n = (&self.block[self.position..]).read(buffer)?;
        self.position += n;
        Ok(n)
    }
}

impl Seek for PipeReader {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(ErrorKind::NotSeekable.into())
    }
}
