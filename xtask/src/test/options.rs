//! Parses the arguments of `cargo xtask test`.

use super::step::Step;
use anyhow::{Context, Result, bail};

#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Run all steps.
    All,
    /// `--quick`: run the checks for each commit.
    Quick,
    /// Run only test steps, optionally several times and under load.
    Selected(Selection),
    RealAgents,
    Cuts,
    Soak,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Selection {
    pub rounds: u32,
    /// Whether to keep every core busy during the run.
    pub load: bool,
    /// Steps to run, without duplicates and in the order of a full run.
    pub steps: Vec<Step>,
    /// Run only tests whose name contains one of these; if empty, run all tests.
    pub names: Vec<String>,
}

impl Request {
    pub fn parse(arguments: &[String]) -> Result<Self> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Ok(Self::All),
            ["--quick"] => Ok(Self::Quick),
            ["real-agents"] => Ok(Self::RealAgents),
            ["cuts"] => Ok(Self::Cuts),
            ["soak"] => Ok(Self::Soak),
            words => Selection::parse(words).map(Self::Selected),
        }
    }
}

impl Selection {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut selection = Self { rounds: 1, load: false, steps: Vec::new(), names: Vec::new() };
        let mut named: Vec<Step> = Vec::new();
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--load" => selection.load = true,
                "--repeat" => {
                    selection.rounds = rounds(words.next().context("`--repeat` needs a number")?)?;
                }
                "--quick" | "real-agents" | "cuts" | "soak" => {
                    bail!("`{word}` cannot be combined with other arguments")
                }
                flag if flag.starts_with('-') => bail!("`test` has no option `{flag}`"),
                name => match Step::TESTS.into_iter().find(|step| step.name() == name) {
                    Some(step) => named.push(step),
                    None => selection.names.push(name.to_owned()),
                },
            }
        }
        let chosen = |step: &Step| {
            if named.is_empty() { step.may_have(&selection.names) } else { named.contains(step) }
        };
        selection.steps = Step::TESTS.into_iter().filter(chosen).collect();
        Ok(selection)
    }
}

fn rounds(word: &str) -> Result<u32> {
    match word.parse() {
        Ok(rounds) if rounds > 0 => Ok(rounds),
        _ => bail!("`--repeat` needs a number above zero, not `{word}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_argument_selects_a_predefined_run() {
        check("", Ok(Request::All));
        check("--quick", Ok(Request::Quick));
        check("real-agents", Ok(Request::RealAgents));
        check("cuts", Ok(Request::Cuts));
        check("soak", Ok(Request::Soak));
    }

    #[test]
    fn arguments_that_are_not_steps_are_test_names() {
        check("process", Ok(selected(1, false, &[Step::Process], &[])));
        check("reload", Ok(selected(1, false, &Step::TESTS, &["reload"])));
        check("flows reload unit", Ok(selected(1, false, &[Step::Unit, Step::Flows], &["reload"])));
    }

    #[test]
    fn the_name_of_a_rust_test_excludes_web_and_flows() {
        let rust = [Step::Unit, Step::InProcess, Step::Process];
        check("sign_in::audit reload", Ok(selected(1, false, &Step::TESTS, &["sign_in::audit", "reload"])));
        check("sign_in::audit who_joins", Ok(selected(1, false, &rust, &["sign_in::audit", "who_joins"])));
        check("flows who_joins", Ok(selected(1, false, &[Step::Flows], &["who_joins"])));
    }

    #[test]
    fn repeat_and_load_can_be_combined_in_any_order() {
        check("--repeat 50 --load in-process", Ok(selected(50, true, &[Step::InProcess], &[])));
        check("flows process --load --repeat 5", Ok(selected(5, true, &[Step::Process, Step::Flows], &[])));
        check("--load", Ok(selected(1, true, &Step::TESTS, &[])));
        check("--repeat 3", Ok(selected(3, false, &Step::TESTS, &[])));
    }

    #[test]
    fn invalid_arguments_are_rejected() {
        check("--repeat", Err("`--repeat` needs a number"));
        check("--repeat 0", Err("`--repeat` needs a number above zero, not `0`"));
        check("--repeat often", Err("`--repeat` needs a number above zero, not `often`"));
        check("--quick --load", Err("`--quick` cannot be combined with other arguments"));
        check("--repeat 2 cuts", Err("`cuts` cannot be combined with other arguments"));
        check("--fast", Err("`test` has no option `--fast`"));
    }

    fn selected(rounds: u32, load: bool, steps: &[Step], names: &[&str]) -> Request {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Request::Selected(Selection { rounds, load, steps: steps.to_vec(), names })
    }

    #[track_caller]
    fn check(line: &str, expected: Result<Request, &str>) {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let parsed = Request::parse(&arguments).map_err(|error| error.to_string());
        assert_eq!(parsed, expected.map_err(str::to_owned), "`{line}`");
    }
}
