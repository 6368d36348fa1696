//! By whom this process was started: alone, or as one of several by `mpirun` or `srun`.
//!
//! Launchers tell each process its place in environment variables; MPI itself is not asked, so a program that was
//! built without it can tell too.

/// This process among those that were started with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// How many were started together.
    pub size: usize,
    /// Which of them this one is, from 0.
    pub rank: usize,
    /// How many of them are on this machine.
    pub on_this_machine: usize,
}

/// How a launcher names its numbers: all processes, this one, those on this machine.
const LAUNCHERS: [[&str; 3]; 5] = [
    [
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ],
    [
        "MV2_COMM_WORLD_SIZE",
        "MV2_COMM_WORLD_RANK",
        "MV2_COMM_WORLD_LOCAL_SIZE",
    ],
    ["PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS"],
    // `srun` sets these, a batch script alone has them not.
    [
        "SLURM_STEP_NUM_TASKS",
        "SLURM_PROCID",
        "SLURM_STEP_TASKS_PER_NODE",
    ],
    ["PALS_SIZE", "PALS_RANKID", "PALS_LOCAL_SIZE"],
];

/// This process, if it is one of several.
pub fn launched() -> Option<Launch> {
    from_variables(|name| std::env::var(name).ok())
}

fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Launch> {
    let number = |name: &str| {
        let value = variable(name)?;
        // Slurm writes `4(x2),3`.
        let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    };
    let found = LAUNCHERS.iter().find_map(|[size, rank, local]| {
        let size = number(size).filter(|size| *size > 1)?;
        let rank = number(rank)?;
        Some(Launch {
            size,
            rank,
            on_this_machine: number(local).unwrap_or(1).clamp(1, size),
        })
    });
    found.filter(|launch| launch.rank < launch.size)
}

impl Launch {
    /// How many threads this process should have, of the cores that it can use. A launcher that binds processes to
    /// cores (`own` fewer than those of the launcher itself) has divided them; else each gets its share.
    pub fn threads(self, usable: usize, own: Option<usize>, of_launcher: Option<usize>) -> usize {
        match (own, of_launcher) {
            (Some(own), Some(all)) if own < all => usable.min(own).max(1),
            _ => (usable / self.on_this_machine).max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Option<Launch> {
        from_variables(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_string())
        })
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        let open_mpi = [
            ("OMPI_COMM_WORLD_SIZE", "4"),
            ("OMPI_COMM_WORLD_RANK", "3"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ];
        let expected = Launch {
            size: 4,
            rank: 3,
            on_this_machine: 2,
        };
        assert_eq!(of(&open_mpi), Some(expected));
        let slurm = [
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_PROCID", "3"),
            ("SLURM_STEP_TASKS_PER_NODE", "2(x2)"),
        ];
        assert_eq!(of(&slurm), Some(expected));
        assert_eq!(of(&[]), None);
        // A single process, and a batch script that has four tasks to start.
        assert_eq!(of(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]), None);
        assert_eq!(of(&[("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")]), None);
    }

    #[test]
    fn cores_are_shared_unless_the_launcher_has_done_so() {
        let launch = Launch {
            size: 8,
            rank: 0,
            on_this_machine: 4,
        };
        assert_eq!(launch.threads(16, Some(16), Some(16)), 4);
        assert_eq!(launch.threads(16, None, None), 4);
        assert_eq!(launch.threads(2, Some(2), Some(16)), 2);
        assert_eq!(launch.threads(2, Some(16), Some(16)), 1);
    }
}
