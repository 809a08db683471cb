//! A system clock that can be set, for one program: a library that it loads before its own, made here with a C compiler.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds of a day.
pub const DAY: i64 = 86_400;

/// Lets a program see another time: the system's and as many seconds as a file says.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static volatile const long *ahead;
__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("FARHOP_TEST_CLOCK");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *seen = file < 0 ? MAP_FAILED : mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, file, 0);
    if (seen != MAP_FAILED) ahead = seen;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && clock == CLOCK_REALTIME && ahead) now->tv_sec += *ahead;
    return failed;
}
"#;

/// A clock that can be set.
#[derive(Debug)]
pub struct Clock {
    file: File,
    folder: PathBuf,
}

impl Clock {
    /// Makes one in `folder`, which has to outlive it. It shows the system's time.
    ///
    /// # Errors
    /// There is no C compiler (`cc`), or it fails, or the folder cannot be written.
    pub fn new(folder: &Path) -> io::Result<Clock> {
        let at = |name: &str| folder.join(name);
        std::fs::write(at("clock.c"), LIBRARY)?;
        let mut cc = Command::new("cc");
        let made = cc.args(["-shared", "-fPIC", "-o"]).arg(at("clock.so")).arg(at("clock.c")).status()?;
        if !made.success() {
            return Err(io::Error::other(format!("cc: {made}")));
        }
        let file = File::options().create_new(true).write(true).open(at("ahead"))?;
        let clock = Clock { file, folder: folder.into() };
        clock.set(0)?;
        Ok(clock)
    }

    /// Goes so many seconds ahead of the system's.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub fn set(&self, ahead: i64) -> io::Result<()> {
        self.file.write_all_at(&ahead.to_ne_bytes(), 0)
    }

    /// The environment of programs that see it.
    pub fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("LD_PRELOAD", self.folder.join("clock.so")), ("FARHOP_TEST_CLOCK", self.folder.join("ahead"))]
    }
}
