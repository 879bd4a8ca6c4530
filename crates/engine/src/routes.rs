//! The routing index: which mailboxes listen to a path.
//!
//! A trie over pattern segments: the cost of a look-up grows with the length of the path and the
//! number of matches, not with the number of subscriptions. Owned by the writer, changed in its order.

use parlor_model::{Agent, AgentId, Mailbox, Path, Pattern, Subscription};
use std::collections::{BTreeSet, HashMap};

/// A mailbox that a path reaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recipient {
    pub mailbox: Mailbox,
}

/// A step that keeps the index in step with the store.
#[derive(Debug, Clone)]
pub enum RouteChange {
    Add { pattern: Pattern, mailbox: Mailbox },
    Remove { pattern: Pattern, mailbox: Mailbox },
    RemoveAgent(AgentId),
}

#[derive(Debug, Default)]
pub struct Routes {
    root: Node,
    /// The other way round, so that what an agent leaves behind is found without a search.
    by_agent: HashMap<AgentId, BTreeSet<(Pattern, Mailbox)>>,
}

#[derive(Debug, Default)]
struct Node {
    children: HashMap<Box<str>, Node>,
    mailboxes: BTreeSet<Mailbox>,
}

impl Routes {
    pub fn build(agents: Vec<Agent>, subscriptions: Vec<Subscription>) -> Self {
        let mut routes = Self::default();
        for agent in agents {
            routes.add(&Pattern::stored(Path::of_agent(&agent.id).as_str()), Mailbox::of(agent.id));
        }
        for Subscription { agent, session, pattern, .. } in subscriptions {
            routes.add(&pattern, Mailbox { agent, session });
        }
        routes
    }

    pub fn apply(&mut self, change: &RouteChange) {
        match change {
            RouteChange::Add { pattern, mailbox } => self.add(pattern, mailbox.clone()),
            RouteChange::Remove { pattern, mailbox } => self.remove(pattern, mailbox),
            RouteChange::RemoveAgent(agent) => {
                for (pattern, mailbox) in self.by_agent.remove(agent).unwrap_or_default() {
                    let segments: Vec<&str> = pattern.segments().collect();
                    self.root.remove(&segments, &mailbox);
                }
            }
        }
    }

    /// The mailboxes of one agent that listen to a path.
    pub fn of_agent(&self, agent: &AgentId, path: &Path) -> Vec<Recipient> {
        let own = self.by_agent.get(agent).into_iter().flatten();
        let found: BTreeSet<&Mailbox> =
            own.filter(|(pattern, _)| pattern.matches(path)).map(|(_, mailbox)| mailbox).collect();
        found.into_iter().map(|mailbox| Recipient { mailbox: mailbox.clone() }).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.by_agent.is_empty()
    }

    fn add(&mut self, pattern: &Pattern, mailbox: Mailbox) {
        let mut node = &mut self.root;
        for segment in pattern.segments() {
            node = node.children.entry(segment.into()).or_default();
        }
        node.mailboxes.insert(mailbox.clone());
        self.by_agent.entry(mailbox.agent.clone()).or_default().insert((pattern.clone(), mailbox));
    }

    fn remove(&mut self, pattern: &Pattern, mailbox: &Mailbox) {
        let segments: Vec<&str> = pattern.segments().collect();
        self.root.remove(&segments, mailbox);
        if let Some(known) = self.by_agent.get_mut(&mailbox.agent) {
            known.remove(&(pattern.clone(), mailbox.clone()));
            if known.is_empty() {
                self.by_agent.remove(&mailbox.agent);
            }
        }
    }

    /// Every mailbox that a broadcast to `path` reaches: its pattern matches the path, or the path, read as a
    /// pattern, matches it. Costs as much as there is below what the path covers.
    pub fn covered(&self, path: &Path) -> Vec<Recipient> {
        let mut found: BTreeSet<Recipient> = self.matching(path).into_iter().collect();
        let wanted: Vec<&str> = path.segments().collect();
        let mut reached = vec![false; wanted.len() + 1];
        reached[0] = true;
        open_wildcards(&wanted, &mut reached);
        self.root.cover(&wanted, &reached, &mut found);
        found.into_iter().collect()
    }

    /// Every mailbox with a pattern that matches, each once, in a fixed order.
    pub fn matching(&self, path: &Path) -> Vec<Recipient> {
        let segments: Vec<&str> = path.segments().collect();
        let mut found = BTreeSet::new();
        // A node is reached at a segment at most once: `**` would otherwise reach it many times.
        let mut reached = BTreeSet::new();
        self.root.collect(&segments, 0, &mut found, &mut reached);
        found.into_iter().map(|mailbox| Recipient { mailbox: mailbox.clone() }).collect()
    }
}

/// A `**` in the broadcast's path may also stand for nothing.
fn open_wildcards(wanted: &[&str], reached: &mut [bool]) {
    for at in 0..wanted.len() {
        if reached[at] && wanted[at] == "**" {
            reached[at + 1] = true;
        }
    }
}

impl Node {
    /// `reached[i]`: the pattern on the way to this node is matched by the first `i` segments wanted.
    fn cover(&self, wanted: &[&str], reached: &[bool], found: &mut BTreeSet<Recipient>) {
        if reached[wanted.len()] {
            found.extend(self.mailboxes.iter().map(|mailbox| Recipient { mailbox: mailbox.clone() }));
        }
        for (segment, child) in &self.children {
            let mut next = vec![false; wanted.len() + 1];
            for at in (0..wanted.len()).filter(|at| reached[*at]) {
                match wanted[at] {
                    "**" => next[at] = true,
                    "*" => next[at + 1] = true,
                    plain => next[at + 1] |= plain == &**segment,
                }
            }
            open_wildcards(wanted, &mut next);
            if next.contains(&true) {
                child.cover(wanted, &next, found);
            }
        }
    }

    /// Takes a mailbox out, and every node that is empty afterwards.
    fn remove(&mut self, pattern: &[&str], mailbox: &Mailbox) {
        let Some((segment, rest)) = pattern.split_first() else {
            self.mailboxes.remove(mailbox);
            return;
        };
        if let Some(child) = self.children.get_mut(*segment) {
            child.remove(rest, mailbox);
            if child.children.is_empty() && child.mailboxes.is_empty() {
                self.children.remove(*segment);
            }
        }
    }

    fn collect<'a>(
        &'a self,
        path: &[&str],
        at: usize,
        found: &mut BTreeSet<&'a Mailbox>,
        reached: &mut BTreeSet<(*const Node, usize)>,
    ) {
        if !reached.insert((std::ptr::from_ref(self), at)) {
            return;
        }
        if at == path.len() {
            found.extend(&self.mailboxes);
        }
        if let Some(rest) = self.children.get("**") {
            for end in at..=path.len() {
                rest.collect(path, end, found, reached);
            }
        }
        let Some(segment) = path.get(at) else { return };
        if let Some(one) = self.children.get("*") {
            one.collect(path, at + 1, found, reached);
        }
        // A wildcard in the path is plain text here; its own node was visited above already.
        if *segment != "*"
            && *segment != "**"
            && let Some(exact) = self.children.get(*segment)
        {
            exact.collect(path, at + 1, found, reached);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mailbox(name: usize) -> Mailbox {
        Mailbox::of(AgentId::stored(format!("a{name}")))
    }

    #[test]
    fn a_removed_agent_leaves_nothing_behind() {
        let mut routes = Routes::default();
        routes.add(&Pattern::parse("slack/**").unwrap(), mailbox(1));
        routes.apply(&RouteChange::RemoveAgent(mailbox(1).agent));
        assert!(routes.is_empty() && routes.root.children.is_empty());
        assert_eq!(routes.matching(&Path::parse("slack/x").unwrap()), []);
    }

    proptest! {
        #[test]
        fn a_broadcast_reaches_exactly_what_matches_in_either_direction(
            patterns in prop::collection::vec(prop::collection::vec("[ab]|\\*\\*?", 1..5), 1..12),
            path in prop::collection::vec("[ab]|\\*\\*?", 1..5),
            removed in 0usize..12,
        ) {
            let patterns: Vec<Pattern> =
                patterns.iter().filter_map(|segments| Pattern::parse(&segments.join("/")).ok()).collect();
            let path = Path::parse(&path.join("/")).unwrap();
            let mut routes = Routes::default();
            for (index, pattern) in patterns.iter().enumerate() {
                routes.add(pattern, mailbox(index));
            }
            if let Some(pattern) = patterns.get(removed) {
                routes.apply(&RouteChange::Remove { pattern: pattern.clone(), mailbox: mailbox(removed) });
            }
            let found: BTreeSet<_> = routes.covered(&path).into_iter().map(|r| r.mailbox).collect();
            let matches = parlor_model::path::matches;
            let expected: BTreeSet<_> = patterns
                .iter()
                .enumerate()
                .filter(|(index, _)| *index != removed)
                .filter(|(_, p)| matches(p.as_str(), path.as_str()) || matches(path.as_str(), p.as_str()))
                .map(|(index, _)| mailbox(index))
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn the_index_finds_exactly_what_the_matcher_matches(
            patterns in prop::collection::vec(prop::collection::vec("[ab]|\\*\\*?", 1..5), 1..12),
            path in prop::collection::vec("[abc]", 1..6),
        ) {
            let patterns: Vec<Pattern> =
                patterns.iter().filter_map(|segments| Pattern::parse(&segments.join("/")).ok()).collect();
            let path = Path::parse(&path.join("/")).unwrap();
            let mut routes = Routes::default();
            for (index, pattern) in patterns.iter().enumerate() {
                routes.add(pattern, mailbox(index));
            }
            let found: BTreeSet<_> = routes.matching(&path).into_iter().map(|r| r.mailbox).collect();
            let expected: BTreeSet<_> = patterns
                .iter()
                .enumerate()
                .filter(|(_, pattern)| pattern.matches(&path))
                .map(|(index, _)| mailbox(index))
                .collect();
            prop_assert_eq!(&found, &expected);
            let one_by_one = (0..patterns.len()).flat_map(|index| routes.of_agent(&mailbox(index).agent, &path));
            prop_assert_eq!(one_by_one.map(|r| r.mailbox).collect::<BTreeSet<_>>(), expected);
        }
    }
}
