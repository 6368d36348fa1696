//! Matrices in the other order: ours are `[in, out]`, those of most programs `[out, in]`. Importing and exporting both
//! need it.

/// `[rows, columns]` -> `[columns, rows]`
pub(crate) fn transposed(values: &[f32], rows: usize) -> Vec<f32> {
    let columns = values.len() / rows.max(1);
    let mut transposed = vec![0.0; values.len()];
    for (row, values) in values.chunks_exact(columns.max(1)).enumerate() {
        for (column, value) in values.iter().enumerate() {
            transposed[column * rows + row] = *value;
        }
    }
    transposed
}
