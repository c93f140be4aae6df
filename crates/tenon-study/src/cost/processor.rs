//! The machine that is measured: what its processor is called, and its caches.

use std::fs;

use tenon_plan::cost::Levels;

/// Returns the name that the processor reports.
pub fn model() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let mut lines = info.lines().filter_map(|line| line.split_once(':'));
        lines.find_map(|(name, value)| (name.trim() == key).then(|| value.trim().to_owned()))
    };
    let name = value("model name").or_else(|| value("CPU part"));
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Its data caches, or what most processors have if it does not say.
pub fn levels() -> Levels {
    let mut caches: Vec<u64> = (0..8).filter_map(cache).collect();
    caches.sort_unstable();
    caches.dedup();
    match caches.is_empty() {
        true => Levels {
            caches: vec![32 << 10, 1 << 20, 16 << 20],
        },
        false => Levels { caches },
    }
}

fn cache(index: u32) -> Option<u64> {
    let of = |what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{what}");
        fs::read_to_string(path).ok()
    };
    let holds_data = of("type")?.trim() != "Instruction";
    let size = bytes(of("size")?.trim())?;
    holds_data.then_some(size)
}

/// Parses `48K`, `2M` or a number.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = match text.strip_suffix('K') {
        Some(number) => (number, 1 << 10),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 1 << 20),
            None => (text, 1),
        },
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(bytes("48K"), Some(48 << 10));
        assert_eq!(bytes("2M"), Some(2 << 20));
        assert_eq!(bytes("77"), Some(77));
        assert_eq!(bytes("many"), None);
    }

    #[test]
    fn caches_come_from_the_nearest_on() {
        let levels = levels();
        assert!(levels.count() > 1);
        assert!(levels.caches.is_sorted());
    }
}
