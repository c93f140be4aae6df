//! Where calibrations are kept: a file in the user's cache, and files that carry them to other machines.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};
use tenon_plan::cost::{Direction, Engine, Level, Levels, Parameters, Symbol};
use thiserror::Error;

use super::calibrate::EngineCalibration;
use super::{PredictionErrors, processor};

/// The version on which a machine's parameters depend beside the machine.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The calibrations of one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct CalibrationStore {
    /// None where the environment names no place.
    file: Option<PathBuf>,
    processor: String,
    all: Vec<EngineCalibration>,
}

/// Calibrations cannot be kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The environment names no place.
    #[error("neither XDG_CACHE_HOME nor HOME says where calibrations are kept")]
    NoPlace,
    /// The file cannot be written.
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, io::Error),
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, io::Error),
    /// The file is not one that was exported.
    #[error("{0} has no parameters of a machine")]
    Malformed(PathBuf),
    /// The model of the file has other parameters.
    #[error("{0} was exported by tenon {1}, and this is {VERSION}")]
    Version(PathBuf, String),
}

impl CalibrationStore {
    /// The file `tenon/cost.json` in `$XDG_CACHE_HOME` or `~/.cache`; none if the environment does not say where
    /// that is. Calibrations of another machine or of another version are as good as none, and so is what cannot
    /// be read.
    pub fn open() -> Self {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let cache = set("XDG_CACHE_HOME").map(PathBuf::from);
        let cache = cache.or_else(|| Some(Path::new(&set("HOME")?).join(".cache")));
        Self::at(cache.map(|cache| cache.join("tenon").join("cost.json")))
    }

    fn at(file: Option<PathBuf>) -> Self {
        let processor = processor::model();
        let kept = file.as_deref().and_then(|file| Self::import(file).ok());
        let ours = kept.filter(|kept| kept.processor == processor);
        Self {
            file,
            processor,
            all: ours.map(|kept| kept.all).unwrap_or_default(),
        }
    }

    /// Returns the calibrations that were [exported](Self::export) to a file, of whichever machine. What is kept beside
    /// them is not kept in that file.
    ///
    /// # Errors
    /// The file cannot be read, another version has written it, or it is something else.
    pub fn import(file: &Path) -> Result<Self, StoreError> {
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| StoreError::Read(file.to_owned(), error))?;
        let malformed = || StoreError::Malformed(file.to_owned());
        let json: Json = serde_json::from_str(&text).map_err(|_| malformed())?;
        let version = json["version"].as_str().ok_or_else(malformed)?;
        if version != VERSION || json["parameters"] != *letters() {
            return Err(StoreError::Version(file.to_owned(), version.to_owned()));
        }
        let processor = json["processor"].as_str().ok_or_else(malformed)?;
        let all = json["calibrations"].as_array().ok_or_else(malformed)?;
        Ok(Self {
            file: None,
            processor: processor.to_owned(),
            all: all
                .iter()
                .map(read)
                .collect::<Option<_>>()
                .ok_or_else(malformed)?,
        })
    }

    /// Writes all calibrations to a file, for [`import`](Self::import) on another machine.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn export(&self, file: &Path) -> Result<(), StoreError> {
        let written = write_whole(file, &self.text());
        written.map_err(|error| StoreError::Write(file.to_owned(), error))
    }

    /// Returns the name that the processor reports.
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// Returns both directions of an engine, if they are there.
    pub fn find(&self, engine: Engine, representation: &str) -> Option<[EngineCalibration; 2]> {
        let find = |direction| {
            let is_it = |known: &&EngineCalibration| {
                let names = (known.engine, known.direction, &*known.representation);
                names == (engine, direction, representation)
            };
            self.all.iter().find(is_it).cloned()
        };
        Some([find(Direction::Encode)?, find(Direction::Decode)?])
    }

    /// Keeps calibrations in the place of older ones, at least as long as the store is there. Gives the file that
    /// they are in.
    ///
    /// # Errors
    /// There is no place for it, or it cannot be written.
    pub fn keep(&mut self, calibrations: &[EngineCalibration; 2]) -> Result<&Path, StoreError> {
        for new in calibrations {
            self.all.retain(|old| {
                let names =
                    |of: &EngineCalibration| (of.engine, of.direction, of.representation.clone());
                names(old) != names(new)
            });
            self.all.push(new.clone());
        }
        let file = self.file.as_deref().ok_or(StoreError::NoPlace)?;
        self.export(file).map(|()| file)
    }

    fn text(&self) -> String {
        let json = json!({
            "version": VERSION,
            "parameters": letters(),
            "processor": self.processor,
            "calibrations": self.all.iter().map(write).collect::<Vec<_>>(),
        });
        format!("{json:#}\n")
    }
}

/// Writes a file at once: a program that reads it at the same time sees the old file or the new one.
fn write_whole(file: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = file.with_extension(format!("{}.new", std::process::id()));
    fs::write(&new, text)?;
    fs::rename(&new, file)
}

/// Returns the symbols of all parameters: a model that has others cannot do with these.
fn letters() -> String {
    Symbol::ALL.map(Symbol::letter).join(" ")
}

fn write(calibration: &EngineCalibration) -> Json {
    let parameters = &calibration.parameters;
    let symbols = Symbol::ALL.into_iter().filter_map(|symbol| {
        let levels = (0..parameters.levels.count()).map_while(|level| {
            let level = Level { symbol, level };
            parameters.nanoseconds.get(&level).copied()
        });
        let levels: Vec<f64> = levels.collect();
        (!levels.is_empty()).then(|| (format!("{symbol:?}"), json!(levels)))
    });
    json!({
        "engine": calibration.engine.name(),
        "direction": calibration.direction.name(),
        "representation": calibration.representation,
        "yardstick": calibration.yardstick,
        "caches": parameters.levels.caches,
        "nanoseconds": symbols.collect::<Map<_, _>>(),
        "messages": calibration.errors.count,
        "median_error": calibration.errors.median,
        "worst_error": calibration.errors.worst,
    })
}

fn read(json: &Json) -> Option<EngineCalibration> {
    let engine = Engine::ALL.into_iter();
    let direction = Direction::ALL.into_iter();
    let caches = json["caches"].as_array()?.iter().map(Json::as_u64);
    let symbols = Symbol::ALL.into_iter().flat_map(|symbol| {
        let levels = json["nanoseconds"][format!("{symbol:?}")].as_array();
        let levels = levels.map(Vec::as_slice).unwrap_or_default().iter();
        let levels = levels
            .enumerate()
            .filter_map(move |(level, value)| Some((Level { symbol, level }, value.as_f64()?)));
        levels.collect::<Vec<_>>()
    });
    Some(EngineCalibration {
        engine: engine.into_iter().find(|it| json["engine"] == it.name())?,
        direction: direction
            .into_iter()
            .find(|it| json["direction"] == it.name())?,
        representation: json["representation"].as_str()?.to_owned(),
        yardstick: json["yardstick"].as_f64()?,
        parameters: Parameters {
            levels: Levels {
                caches: caches.collect::<Option<_>>()?,
            },
            nanoseconds: symbols.collect(),
        },
        errors: PredictionErrors {
            count: json["messages"].as_u64()? as usize,
            median: json["median_error"].as_f64()?,
            worst: json["worst_error"].as_f64()?,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const ENGINE: Engine = Engine::Machine;

    fn calibrations() -> [EngineCalibration; 2] {
        let level = Level {
            symbol: Symbol::Begin,
            level: 0,
        };
        Direction::ALL.map(|direction| EngineCalibration {
            engine: ENGINE,
            direction,
            representation: "xdr".to_owned(),
            yardstick: 5.5,
            parameters: Parameters {
                levels: Levels {
                    caches: vec![1 << 15],
                },
                nanoseconds: BTreeMap::from([(level, 1.25)]),
            },
            errors: PredictionErrors {
                count: 3,
                median: 0.1,
                worst: 0.2,
            },
        })
    }

    #[test]
    fn what_is_kept_is_there_for_the_next_store() {
        let folder = env::temp_dir().join(format!("tenon-store-{}", std::process::id()));
        let file = folder.join("kept").join("cost.json");
        let mut store = CalibrationStore::at(Some(file.clone()));
        assert_eq!(store.find(ENGINE, "xdr"), None);
        assert_eq!(store.keep(&calibrations()).unwrap(), file);
        let next = CalibrationStore::at(Some(file));
        assert_eq!(next.find(ENGINE, "xdr"), Some(calibrations()));
        assert_eq!(next.find(ENGINE, "lean"), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_exported_is_imported_on_any_machine() {
        let file = env::temp_dir().join(format!("tenon-machine-{}.json", std::process::id()));
        let mut store = CalibrationStore::at(None);
        let _ = store.keep(&calibrations());
        store.processor = "another".to_owned();
        store.export(&file).unwrap();
        let there = CalibrationStore::import(&file).unwrap();
        assert_eq!(there.processor(), "another");
        assert_eq!(there.find(ENGINE, "xdr"), Some(calibrations()));
        // As the kept file of this machine, it would be of another one.
        assert_eq!(
            CalibrationStore::at(Some(file.clone())).find(ENGINE, "xdr"),
            None
        );
        let text = fs::read_to_string(&file).unwrap();
        for (damaged, said) in [
            (
                text.replace(VERSION, "0.0.0"),
                "was exported by tenon 0.0.0",
            ),
            (
                text.replace("yardstick", "yard"),
                "no parameters of a machine",
            ),
            ("{}".to_owned(), "no parameters of a machine"),
            ("nothing".to_owned(), "no parameters of a machine"),
        ] {
            fs::write(&file, damaged).unwrap();
            let error = CalibrationStore::import(&file).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        fs::remove_file(&file).unwrap();
        let error = CalibrationStore::import(&file).unwrap_err();
        assert!(matches!(error, StoreError::Read(..)), "{error}");
    }

    #[test]
    fn what_cannot_be_kept_is_there_as_long_as_the_store() {
        // A file is no folder.
        let nowhere = PathBuf::from("/dev/null/tenon/cost.json");
        for file in [None, Some(nowhere)] {
            let mut store = CalibrationStore::at(file);
            assert!(store.keep(&calibrations()).is_err());
            assert_eq!(store.find(ENGINE, "xdr"), Some(calibrations()));
        }
    }
}
