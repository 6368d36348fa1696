//! This process among those that `mpirun` or `srun` started with it (its rank), and how many threads it gets.
//!
//! With the feature `mpi` they train together; without it they are refused, because each would train the same
//! model into the same folder.

use attentive_train::distributed::{Communicator, SingleProcess, launch::launched};

use crate::terminal::Terminal;

/// The processes that train together.
pub struct Ranks {
    #[cfg(feature = "mpi")]
    mpi: Option<attentive_train::distributed::mpi::Mpi>,
}

impl Ranks {
    /// Joins the processes that were started with this one, if there are any.
    #[cfg(feature = "mpi")]
    pub fn join() -> anyhow::Result<Self> {
        use attentive_train::distributed::mpi::Mpi;
        let Some(launch) = launched() else {
            return Ok(Self::alone());
        };
        let mpi = Mpi::start();
        let found = mpi.as_ref().map_or(0, Mpi::size);
        if found != launch.size {
            anyhow::bail!(
                "{} processes were started together, but MPI knows of {found}: start them with the mpirun of the MPI \
                 library that this program was built with, or with `srun --mpi=pmix`",
                launch.size
            );
        }
        Ok(Self { mpi })
    }

    /// Refuses to be one of several.
    #[cfg(not(feature = "mpi"))]
    pub fn join() -> anyhow::Result<Self> {
        if let Some(launch) = launched() {
            let (size, rank) = (launch.size, launch.rank);
            anyhow::bail!(crate::exit::Ending::Usage(format!(
                "this is process {rank} of {size} that were started together, and this program was built without \
                 MPI: each would train the same model into the same folder. Build it with `cargo build --release \
                 --features mpi`, or start it once"
            )));
        }
        Ok(Self::alone())
    }

    /// This process alone, whoever started it.
    pub fn alone() -> Self {
        Self {
            #[cfg(feature = "mpi")]
            mpi: None,
        }
    }

    /// How they talk to each other.
    pub fn communicator(&self) -> &dyn Communicator {
        #[cfg(feature = "mpi")]
        if let Some(mpi) = &self.mpi {
            return mpi;
        }
        &SingleProcess
    }

    /// Ends all of them if this one has failed, which the others would wait for forever.
    #[cfg_attr(not(feature = "mpi"), expect(unused_variables))]
    pub fn ended<T>(&self, result: anyhow::Result<T>, terminal: &Terminal) -> anyhow::Result<T> {
        #[cfg(feature = "mpi")]
        if let (Err(error), Some(mpi)) = (&result, &self.mpi) {
            let rank = mpi.rank();
            if rank > 0 {
                // Most of what can fail fails everywhere: then rank 0 says it alone.
                std::thread::sleep(std::time::Duration::from_secs(2));
            }
            terminal.error(format_args!(
                "rank {rank} on {}: {}\nThis ends all ranks. The last checkpoint is intact: the same command goes on from it, \
                 with as many ranks as you like.",
                mpi.host(),
                crate::exit::message(error)
            ));
            mpi.abort(1);
        }
        result
    }
}

/// Threads for this process if it is one of several on this machine: 0, for as many as there are, if it is not.
pub fn default_threads() -> usize {
    match launched() {
        Some(launch) if std::env::var_os("RAYON_NUM_THREADS").is_none() => launch.threads(
            usable_cores(),
            affinity(Process::This),
            affinity(Process::Launcher),
        ),
        _ => 0,
    }
}

/// What to tell someone whose launcher gives each process fewer cores than its share.
pub fn binding_note() -> Option<String> {
    let launch = launched()?;
    let (own, all) = (affinity(Process::This)?, affinity(Process::Launcher)?);
    let share = all / launch.on_this_machine;
    (own < share).then(|| {
        format!(
            "the launcher lets each rank use {own} of {all} cores, and {share} would be its share: \
             `mpirun --bind-to none` gives it that"
        )
    })
}

fn usable_cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whose cores to count.
#[derive(Debug, Clone, Copy)]
enum Process {
    This,
    /// Whoever started this one; a launcher binds the processes that it starts, not itself.
    Launcher,
}

/// On how many cores a process may run.
#[cfg(target_os = "linux")]
fn affinity(process: Process) -> Option<usize> {
    let id = match process {
        Process::This => 0,
        Process::Launcher => std::os::unix::process::parent_id() as libc::pid_t,
    };
    // SAFETY: the set is plain bits, as large as said, and outlives the calls.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let asked = libc::sched_getaffinity(id, size_of::<libc::cpu_set_t>(), &mut set);
        (asked == 0).then(|| libc::CPU_COUNT(&set) as usize)
    }
}

#[cfg(not(target_os = "linux"))]
fn affinity(_: Process) -> Option<usize> {
    None
}
