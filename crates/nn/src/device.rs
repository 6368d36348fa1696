//! From a name on the command line (`--device cpu`) to a Burn device.
//!
//! Where several processes train together, each takes a GPU of its machine by its local rank, which whoever started it
//! (Open MPI, MPICH, Slurm) left in the environment.

use burn::tensor::Device;
#[cfg(any(
    feature = "cuda",
    feature = "rocm",
    feature = "wgpu",
    feature = "vulkan",
    feature = "metal"
))]
use burn::tensor::DeviceType;

use crate::error::NnError;

/// Parses `cpu`, `cuda`, `cuda:1`, `wgpu`, `vulkan`, `metal` or `rocm`; only what this build holds. A GPU without a
/// number is the one of this process's local rank.
pub fn parse(name: &str) -> Result<Device, NnError> {
    let (kind, index) = name.split_once(':').unzip();
    let kind = kind.unwrap_or(name);
    let index: Option<usize> = index
        .map(|index| index.parse().map_err(|_| unknown(name)))
        .transpose()?;
    match kind {
        "cpu" if index.unwrap_or(0) == 0 => Ok(Device::flex()),
        #[cfg(feature = "cuda")]
        "cuda" => gpu(name, index, DeviceType::Cuda, || Device::cuda(0)),
        #[cfg(feature = "rocm")]
        "rocm" => gpu(name, index, DeviceType::Rocm, || Device::rocm(0)),
        #[cfg(feature = "wgpu")]
        "wgpu" => gpu(name, index, DeviceType::Wgpu, || {
            Device::wgpu(Default::default())
        }),
        #[cfg(feature = "vulkan")]
        "vulkan" => gpu(name, index, DeviceType::Vulkan, || {
            Device::vulkan(Default::default())
        }),
        #[cfg(feature = "metal")]
        "metal" => gpu(name, index, DeviceType::Metal, || {
            Device::metal(Default::default())
        }),
        _ => Err(unknown(name)),
    }
}

/// The device names of this build, for help texts and messages.
pub fn available() -> Vec<&'static str> {
    let mut names = vec!["cpu"];
    for (compiled, name) in [
        (cfg!(feature = "cuda"), "cuda"),
        (cfg!(feature = "rocm"), "rocm"),
        (cfg!(feature = "wgpu"), "wgpu"),
        (cfg!(feature = "vulkan"), "vulkan"),
        (cfg!(feature = "metal"), "metal"),
    ] {
        if compiled {
            names.push(name);
        }
    }
    names
}

/// The GPU with this number, or that of the local rank; more processes than GPUs share them. The first is found by
/// `first`, without looking for others.
#[cfg(any(
    feature = "cuda",
    feature = "rocm",
    feature = "wgpu",
    feature = "vulkan",
    feature = "metal"
))]
fn gpu(
    name: &str,
    index: Option<usize>,
    kind: DeviceType,
    first: impl FnOnce() -> Device,
) -> Result<Device, NnError> {
    let rank = local_rank(|variable| std::env::var(variable).ok());
    if index.unwrap_or(rank) == 0 {
        return Ok(first());
    }
    let devices = Device::enumerate(kind);
    let number = index.unwrap_or(rank % devices.len().max(1));
    devices
        .get(number)
        .cloned()
        .ok_or_else(|| NnError::NoSuchDevice {
            asked: name.to_owned(),
            found: devices.len(),
        })
}

/// Which of the processes of its machine this is, from 0.
#[cfg(any(
    test,
    feature = "cuda",
    feature = "rocm",
    feature = "wgpu",
    feature = "vulkan",
    feature = "metal"
))]
fn local_rank(variable: impl Fn(&str) -> Option<String>) -> usize {
    // Open MPI; MPICH and Intel MPI; MVAPICH; Slurm.
    const VARIABLES: [&str; 4] = [
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "SLURM_LOCALID",
    ];
    let found = VARIABLES.iter().find_map(|name| variable(name));
    found.and_then(|rank| rank.parse().ok()).unwrap_or(0)
}

fn unknown(name: &str) -> NnError {
    NnError::UnknownDevice {
        asked: name.to_string(),
        available: available().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_is_always_there() {
        assert_eq!(parse("cpu").unwrap(), Device::flex());
    }

    #[test]
    fn an_unknown_device_names_what_would_work() {
        let message = parse("abacus").unwrap_err().to_string();
        assert!(
            message.contains("`abacus`") && message.contains("cpu"),
            "{message}"
        );
        assert!(parse("cpu:1").is_err());
        assert!(parse("cpu:x").is_err());
    }

    #[test]
    fn the_local_rank_is_what_the_launcher_says() {
        let with = |name: &'static str, value: &'static str| {
            local_rank(move |asked| (asked == name).then(|| value.to_owned()))
        };
        assert_eq!(with("OMPI_COMM_WORLD_LOCAL_RANK", "3"), 3);
        assert_eq!(with("MPI_LOCALRANKID", "1"), 1);
        assert_eq!(with("SLURM_LOCALID", "2"), 2);
        assert_eq!(with("SLURM_LOCALID", "?"), 0);
        assert_eq!(with("SLURM_PROCID", "5"), 0);
    }
}
