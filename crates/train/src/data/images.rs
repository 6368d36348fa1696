//! Images and their classes: those of IDX files, of PNG files, and of folders of PNG files, one for each class.
//!
//! Neighbors: [`crate::recipe`] names the files, [`super::image_files`] reads them, [`crate::task::images`] and
//! [`crate::task::denoising`] learn from them.

use std::path::{Path, PathBuf};

use attentive_model::config::{DiffusionConfig, Resize, VitConfig};

use super::image_files::{
    ImageError, LABELS, Result, bytes_of, entries, has_ending, idx, idx_images, name_of, png,
};

/// What a model wants of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageShape {
    /// Height and width.
    pub size: usize,
    /// 1 or 3.
    pub channels: usize,
    /// What becomes of an image of another size.
    pub resize: Resize,
}

/// Some images: `[count, channels, size, size]`, a byte for each value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Images {
    /// Image by image.
    pub pixels: Vec<u8>,
    /// How many there are.
    pub count: usize,
}

/// Images with the class of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabeledImages {
    /// The images.
    pub images: Images,
    /// Their classes.
    pub labels: Labels,
}

/// The class of each image, as the files say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// By number.
    Numbers(Vec<u8>),
    /// By name: all names in order, and the place of each image's in them.
    Names(Vec<String>, Vec<u32>),
}

impl ImageShape {
    /// Numbers of an image.
    pub fn values(self) -> usize {
        self.channels * self.size * self.size
    }
}

impl From<&VitConfig> for ImageShape {
    fn from(config: &VitConfig) -> Self {
        Self {
            size: config.image_size,
            channels: config.channels,
            resize: config.resize,
        }
    }
}

impl From<&DiffusionConfig> for ImageShape {
    fn from(config: &DiffusionConfig) -> Self {
        Self {
            size: config.image_size,
            channels: config.channels,
            resize: Resize::Never,
        }
    }
}

impl Default for Labels {
    fn default() -> Self {
        Self::Numbers(Vec::new())
    }
}

impl Labels {
    /// The names of the classes: those of the folders, or the numbers from 0 to the largest.
    pub fn classes(&self) -> Vec<String> {
        match self {
            Self::Numbers(numbers) => {
                let most = numbers
                    .iter()
                    .max()
                    .map_or(0, |most| usize::from(*most) + 1);
                (0..most).map(|class| class.to_string()).collect()
            }
            Self::Names(names, _) => names.clone(),
        }
    }

    /// The place of each image's class among these.
    pub fn among(&self, classes: &[String]) -> Result<Vec<u32>> {
        let unknown = |class: String| ImageError::UnknownClass {
            class,
            known: classes.len(),
            names: classes[..classes.len().min(12)].join(", "),
        };
        match self {
            Self::Numbers(numbers) => {
                let known = |number: &u8| usize::from(*number) < classes.len();
                match numbers.iter().find(|number| !known(number)) {
                    Some(number) => Err(unknown(number.to_string())),
                    None => Ok(numbers.iter().map(|number| u32::from(*number)).collect()),
                }
            }
            Self::Names(names, ids) => {
                let mut places = Vec::with_capacity(names.len());
                for name in names {
                    let place = classes.iter().position(|class| class == name);
                    places.push(place.ok_or_else(|| unknown(name.clone()))? as u32);
                }
                Ok(ids.iter().map(|id| places[*id as usize]).collect())
            }
        }
    }
}

impl Images {
    /// Reads a PNG file or an IDX file of images.
    pub fn read(path: &Path, shape: ImageShape) -> Result<Self> {
        let bytes = bytes_of(path)?;
        let pixels = if bytes.starts_with(b"\x89PNG") || has_ending(path, "png") {
            png(path, &bytes, shape)?
        } else {
            idx_images(path, &bytes, shape)?
        };
        Ok(Self {
            count: pixels.len() / shape.values(),
            pixels,
        })
    }

    /// One of them.
    pub fn image(&self, index: usize, shape: ImageShape) -> &[u8] {
        &self.pixels[index * shape.values()..][..shape.values()]
    }

    fn append(&mut self, mut other: Self) {
        self.pixels.append(&mut other.pixels);
        self.count += other.count;
    }
}

impl LabeledImages {
    /// Reads folders of classes, and IDX files of images, each of which has the next of `labels`; `key` is where these
    /// are named.
    pub fn read(
        images: &[PathBuf],
        labels: &[PathBuf],
        shape: ImageShape,
        key: &'static str,
    ) -> Result<Self> {
        let mut all: Option<Self> = None;
        let mut labels = labels.iter();
        for path in images {
            let part = if path.is_dir() {
                Self::of_folder(path, shape)?
            } else {
                let missing = || ImageError::NoLabels {
                    path: path.clone(),
                    key,
                };
                Self::of_idx(path, labels.next().ok_or_else(missing)?, shape)?
            };
            match &mut all {
                None => all = Some(part),
                Some(all) => all.append(part)?,
            }
        }
        if let Some(path) = labels.next() {
            return Err(ImageError::LeftOver { path: path.clone() });
        }
        Ok(all.unwrap_or_default())
    }

    fn of_idx(path: &Path, labels: &Path, shape: ImageShape) -> Result<Self> {
        let images = Images::read(path, shape)?;
        let bytes = bytes_of(labels)?;
        let numbers = idx(labels, &bytes, &LABELS)?.1.to_vec();
        if numbers.len() != images.count {
            return Err(ImageError::Counts {
                path: labels.to_owned(),
                labels: numbers.len(),
                of: path.to_owned(),
                images: images.count,
            });
        }
        Ok(Self {
            images,
            labels: Labels::Numbers(numbers),
        })
    }

    fn of_folder(folder: &Path, shape: ImageShape) -> Result<Self> {
        let (mut images, mut names, mut ids) = (Images::default(), Vec::new(), Vec::new());
        for class in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
            let files = entries(&class)?;
            for file in &files {
                images.append(Images {
                    pixels: png(file, &bytes_of(file)?, shape)?,
                    count: 1,
                });
                ids.push(names.len() as u32);
            }
            if !files.is_empty() {
                names.push(name_of(&class));
            }
        }
        if names.is_empty() {
            return Err(ImageError::Empty {
                path: folder.to_owned(),
            });
        }
        let labels = Labels::Names(names, ids);
        Ok(Self { images, labels })
    }

    /// Takes in others, whose classes must be known by the same words.
    fn append(&mut self, other: Self) -> Result<()> {
        let mut classes = self.labels.classes();
        let more = other.labels.classes();
        classes.extend(
            more.into_iter()
                .filter(|name| !classes.contains(name))
                .collect::<Vec<_>>(),
        );
        let mut ids = self.labels.among(&classes)?;
        ids.extend(other.labels.among(&classes)?);
        self.labels = Labels::Names(classes, ids);
        self.images.append(other.images);
        Ok(())
    }
}

/// Pixels as numbers with the mean and the deviation of their channel taken out: of so many images
/// `[count, channels, size, size]`.
pub fn normalized(pixels: &[u8], size: usize, mean: &[f64], deviation: &[f64]) -> Vec<f32> {
    let tables: Vec<[f32; 256]> = mean
        .iter()
        .zip(deviation)
        .map(|(mean, deviation)| {
            std::array::from_fn(|byte| ((byte as f64 / 255.0 - mean) / deviation) as f32)
        })
        .collect();
    let planes = pixels.chunks(size * size).zip(tables.iter().cycle());
    planes
        .flat_map(|(plane, table)| plane.iter().map(|byte| table[usize::from(*byte)]))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::image_files::to_idx;
    use super::*;

    const SHAPE: ImageShape = ImageShape {
        size: 2,
        channels: 1,
        resize: Resize::Never,
    };

    fn file(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn png_of(pixels: &[u8], width: u32, color: png::ColorType) -> Vec<u8> {
        let mut bytes = Vec::new();
        let height = pixels.len() as u32 / width / color.samples() as u32;
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(color);
        encoder
            .write_header()
            .unwrap()
            .write_image_data(pixels)
            .unwrap();
        bytes
    }

    #[test]
    fn idx_files_are_read_and_what_is_wrong_with_them_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let [images, labels] = to_idx(&[1, 2, 3, 4, 5, 6, 7, 8], 2, &[3, 0]);
        let cut = file(folder, "cut", &images[..20]);
        let [images, labels] = [
            file(folder, "images", &images),
            file(folder, "labels", &labels),
        ];
        let read = |images: &PathBuf, labels: &[PathBuf]| {
            LabeledImages::read(std::slice::from_ref(images), labels, SHAPE, "data.labels")
        };
        let found = read(&images, std::slice::from_ref(&labels)).unwrap();
        assert_eq!(found.images.image(1, SHAPE), [5, 6, 7, 8]);
        assert_eq!(found.labels, Labels::Numbers(vec![3, 0]));
        assert_eq!(found.labels.classes(), ["0", "1", "2", "3"]);
        let message =
            |images: &PathBuf, labels: &[PathBuf]| read(images, labels).unwrap_err().to_string();
        for (images, labels, part) in [
            (
                &cut,
                vec![labels.clone()],
                "should hold 8 bytes behind its first 16, and holds 4",
            ),
            (&labels, vec![labels.clone()], "it has 1 dimensions"),
            (
                &images,
                vec![],
                "name the IDX file of the labels too (data.labels)",
            ),
            (
                &images,
                vec![images.clone()],
                "is not an IDX file of labels",
            ),
            (
                &images,
                vec![labels.clone(), labels.clone()],
                "more files of labels",
            ),
        ] {
            let message = message(images, &labels);
            assert!(message.contains(part), "{message}");
        }
        let unknown = found.labels.among(&["a".to_owned(), "b".to_owned()]);
        assert!(
            unknown
                .unwrap_err()
                .to_string()
                .contains("the class 3 is not one of the model's 2: a, b")
        );
        let larger = ImageShape { size: 3, ..SHAPE };
        let message = Images::read(&images, larger).unwrap_err().to_string();
        assert!(
            message.contains("has 2 x 2 pixels, and the model reads 3 x 3"),
            "{message}"
        );
    }

    #[test]
    fn a_folder_for_each_class_is_read_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        file(
            folder,
            "dog/1.png",
            &png_of(&[9; 12], 2, png::ColorType::Rgb),
        );
        file(
            folder,
            "cat/1.png",
            &png_of(&[5, 6, 7, 8], 2, png::ColorType::Grayscale),
        );
        let rgba = [255, 0, 0, 7, 0, 255, 0, 7, 0, 0, 255, 7, 255, 255, 255, 7];
        file(folder, "cat/2.png", &png_of(&rgba, 2, png::ColorType::Rgba));
        let found = LabeledImages::read(&[folder.to_owned()], &[], SHAPE, "data.labels").unwrap();
        let names = ["cat", "dog"].map(str::to_owned).to_vec();
        assert_eq!(found.labels, Labels::Names(names.clone(), vec![0, 0, 1]));
        assert_eq!(found.images.image(0, SHAPE), [5, 6, 7, 8]);
        assert_eq!(found.images.image(1, SHAPE), [76, 150, 29, 255]);
        let colors = ImageShape {
            channels: 3,
            ..SHAPE
        };
        let found = LabeledImages::read(&[folder.to_owned()], &[], colors, "data.labels").unwrap();
        assert_eq!(found.images.image(1, colors)[..4], [255, 0, 0, 255]);
        assert_eq!(
            found
                .labels
                .among(&["dog".to_owned(), "cat".to_owned()])
                .unwrap(),
            [1, 1, 0]
        );
        file(folder, "dog/2.png", b"no picture");
        let error =
            LabeledImages::read(&[folder.to_owned()], &[], SHAPE, "data.labels").unwrap_err();
        assert!(
            error.to_string().contains("2.png cannot be read as a PNG"),
            "{error}"
        );
    }

    #[test]
    fn pixels_are_normalized_by_channel() {
        let values = normalized(&[0, 255, 51], 1, &[0.0, 0.5, 0.2], &[1.0, 0.5, 2.0]);
        assert_eq!(values, [0.0, 1.0, 0.0]);
    }
}
