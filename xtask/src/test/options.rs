//! What `cargo xtask test` was asked to do, read from its arguments.

use super::step::Step;
use anyhow::{Context, Result, bail};

#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Every step.
    All,
    /// `--quick`: the checks that a developer runs before each commit.
    Quick,
    /// Test steps only, perhaps several times and on a busy machine.
    Selected(Selection),
    RealAgents,
    Cuts,
    Soak,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Selection {
    pub rounds: u32,
    /// Keep every core busy meanwhile.
    pub load: bool,
    /// In the order in which the whole run has them, each once.
    pub steps: Vec<Step>,
    /// Only tests whose name contains one of these; all tests if there are none.
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
                "--quick" | "real-agents" | "cuts" | "soak" => bail!("`{word}` goes with nothing else"),
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
    fn without_a_selection_whole_runs_are_chosen_by_one_word() {
        check("", Ok(Request::All));
        check("--quick", Ok(Request::Quick));
        check("real-agents", Ok(Request::RealAgents));
        check("cuts", Ok(Request::Cuts));
        check("soak", Ok(Request::Soak));
    }

    #[test]
    fn words_that_are_no_steps_are_names_of_tests() {
        check("process", Ok(selected(1, false, &[Step::Process], &[])));
        check("reload", Ok(selected(1, false, &Step::TESTS, &["reload"])));
        check("flows reload unit", Ok(selected(1, false, &[Step::Unit, Step::Flows], &["reload"])));
    }

    #[test]
    fn a_name_of_a_rust_test_starts_no_browser() {
        let rust = [Step::Unit, Step::InProcess, Step::Process];
        check("sign_in::audit reload", Ok(selected(1, false, &Step::TESTS, &["sign_in::audit", "reload"])));
        check("sign_in::audit who_joins", Ok(selected(1, false, &rust, &["sign_in::audit", "who_joins"])));
        check("flows who_joins", Ok(selected(1, false, &[Step::Flows], &["who_joins"])));
    }

    #[test]
    fn repeating_and_load_work_together_and_alone_and_in_any_order() {
        check("--repeat 50 --load in-process", Ok(selected(50, true, &[Step::InProcess], &[])));
        check("flows process --load --repeat 5", Ok(selected(5, true, &[Step::Process, Step::Flows], &[])));
        check("--load", Ok(selected(1, true, &Step::TESTS, &[])));
        check("--repeat 3", Ok(selected(3, false, &Step::TESTS, &[])));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        check("--repeat", Err("`--repeat` needs a number"));
        check("--repeat 0", Err("`--repeat` needs a number above zero, not `0`"));
        check("--repeat often", Err("`--repeat` needs a number above zero, not `often`"));
        check("--quick --load", Err("`--quick` goes with nothing else"));
        check("--repeat 2 cuts", Err("`cuts` goes with nothing else"));
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
