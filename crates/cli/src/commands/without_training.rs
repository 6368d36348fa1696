//! The commands of language models, of BERT and of image models in a build without the feature `training`: they say what is missing.

use clap::Args;

use crate::exit::Ending;
use crate::terminal::Terminal;

/// Whatever is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Example, with the feature training:\n  attentive generate --model runs/gpt-shakespeare \"ROMEO:\""
)]
pub struct AnyArgs {
    /// Arguments of the complete program
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<String>,
}

/// Of `generate`.
pub type GenerateArgs = AnyArgs;
/// Of `fill`.
pub type FillArgs = AnyArgs;
/// Of `classify`.
pub type ClassifyArgs = AnyArgs;
/// Of `draw`.
pub type DrawArgs = AnyArgs;
/// Of `embed`.
pub type EmbedArgs = AnyArgs;

/// Refuses.
pub fn run(args: AnyArgs, _: &Terminal) -> anyhow::Result<()> {
    let problem = format!(
        "this command ({} arguments) needs the networks that this program was built without; build it with the feature \
         `training`, which is on by default",
        args.arguments.len()
    );
    Err(Ending::Usage(problem).into())
}
