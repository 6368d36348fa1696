//! From a name on the command line (`--device cpu`) to a Burn device.

use burn::tensor::Device;

use crate::error::NnError;

/// Parses `cpu`, `cuda`, `cuda:1`, `wgpu`, `vulkan`, `metal` or `rocm`; only what this build holds.
pub fn parse(name: &str) -> Result<Device, NnError> {
    let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
    let index: usize = index.parse().map_err(|_| unknown(name))?;
    match kind {
        "cpu" if index == 0 => Ok(Device::flex()),
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Device::cuda(index)),
        #[cfg(feature = "rocm")]
        "rocm" => Ok(Device::rocm(index)),
        #[cfg(feature = "wgpu")]
        "wgpu" => Ok(Device::wgpu(gpu(index))),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(gpu(index))),
        #[cfg(feature = "metal")]
        "metal" => Ok(Device::metal(gpu(index))),
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

#[cfg(any(feature = "wgpu", feature = "vulkan", feature = "metal"))]
fn gpu(index: usize) -> burn::tensor::DeviceKind {
    match index {
        0 => burn::tensor::DeviceKind::default(),
        _ => burn::tensor::DeviceKind::DiscreteGpu(index),
    }
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
    }
}
