//! The routing index: finds the mailboxes whose subscriptions match a path.
//!
//! A trie over pattern segments: the cost of a lookup grows with the length of the path and the number of
//! matches, not with the number of subscriptions. Owned by the writer and updated in commit order. Patterns
//! with an inner `**` (before the last segment) can match partially in many ways, so they are counted per
//! user and limited.

use parlor_model::{Agent, AgentId, Mailbox, Path, Pattern, Subscription, UserId};
use std::collections::{BTreeSet, HashMap};

/// A mailbox that a path reaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Recipient {
    pub mailbox: Mailbox,
}

/// A change that keeps the index consistent with the store.
#[derive(Debug, Clone)]
pub enum RouteChange {
    Add { pattern: Pattern, mailbox: Mailbox, owner: UserId },
    Remove { pattern: Pattern, mailbox: Mailbox },
    RemoveAgent(AgentId),
}

#[derive(Debug, Default)]
pub struct RoutingIndex {
    root: Node,
    /// Reverse index, so that all patterns of a removed agent are found without a search.
    by_agent: HashMap<AgentId, AgentSubscriptions>,
    /// Number of patterns with an inner `**`, over all agents of each user.
    globstars: HashMap<UserId, usize>,
}

#[derive(Debug)]
struct AgentSubscriptions {
    owner: UserId,
    patterns: BTreeSet<(Pattern, Mailbox)>,
}

#[derive(Debug, Default)]
struct Node {
    children: HashMap<Box<str>, Node>,
    mailboxes: BTreeSet<Mailbox>,
}

impl RoutingIndex {
    pub fn build(agents: Vec<Agent>, subscriptions: Vec<Subscription>) -> Self {
        let mut routing_index = Self::default();
        for Agent { id, owner, .. } in agents {
            let own = Pattern::stored(Path::of_agent(&id).as_str());
            routing_index.add(&own, Mailbox::of(id), &owner);
        }
        for Subscription { agent, session, pattern, .. } in subscriptions {
            if let Some(owner) = routing_index.by_agent.get(&agent).map(|existing| existing.owner.clone()) {
                routing_index.add(&pattern, Mailbox { agent, session }, &owner);
            }
        }
        routing_index
    }

    pub fn apply(&mut self, change: &RouteChange) {
        match change {
            RouteChange::Add { pattern, mailbox, owner } => self.add(pattern, mailbox.clone(), owner),
            RouteChange::Remove { pattern, mailbox } => self.remove(pattern, mailbox),
            RouteChange::RemoveAgent(agent) => {
                let Some(AgentSubscriptions { owner, patterns }) = self.by_agent.remove(agent) else {
                    return;
                };
                for (pattern, mailbox) in patterns {
                    self.remove_route(&pattern, &mailbox, &owner);
                }
            }
        }
    }

    /// The mailboxes of one agent whose patterns match a path.
    pub fn of_agent(&self, agent: &AgentId, path: &Path) -> Vec<Recipient> {
        let own = self.by_agent.get(agent).into_iter().flat_map(|existing| &existing.patterns);
        let found: BTreeSet<&Mailbox> =
            own.filter(|(pattern, _)| pattern.matches(path)).map(|(_, mailbox)| mailbox).collect();
        found.into_iter().map(|mailbox| Recipient { mailbox: mailbox.clone() }).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.by_agent.is_empty()
    }

    /// Number of patterns with an inner `**`, over all agents of a user.
    pub fn globstar_patterns_of(&self, owner: &UserId) -> usize {
        self.globstars.get(owner).copied().unwrap_or_default()
    }

    fn add(&mut self, pattern: &Pattern, mailbox: Mailbox, owner: &UserId) {
        let existing = self.by_agent.entry(mailbox.agent.clone());
        let existing = existing
            .or_insert_with(|| AgentSubscriptions { owner: owner.clone(), patterns: BTreeSet::new() });
        if !existing.patterns.insert((pattern.clone(), mailbox.clone())) {
            return;
        }
        if pattern.has_inner_globstar() {
            *self.globstars.entry(owner.clone()).or_default() += 1;
        }
        let mut node = &mut self.root;
        for segment in pattern.segments() {
            node = node.children.entry(segment.into()).or_default();
        }
        node.mailboxes.insert(mailbox);
    }

    fn remove(&mut self, pattern: &Pattern, mailbox: &Mailbox) {
        let Some(existing) = self.by_agent.get_mut(&mailbox.agent) else { return };
        if !existing.patterns.remove(&(pattern.clone(), mailbox.clone())) {
            return;
        }
        let owner = existing.owner.clone();
        if existing.patterns.is_empty() {
            self.by_agent.remove(&mailbox.agent);
        }
        self.remove_route(pattern, mailbox, &owner);
    }

    fn remove_route(&mut self, pattern: &Pattern, mailbox: &Mailbox, owner: &UserId) {
        let segments: Vec<&str> = pattern.segments().collect();
        self.root.remove(&segments, mailbox);
        if pattern.has_inner_globstar()
            && let Some(globstars) = self.globstars.get_mut(owner)
        {
            *globstars -= 1;
            if *globstars == 0 {
                self.globstars.remove(owner);
            }
        }
    }

    /// Returns every mailbox that a broadcast to `path` reaches: mailboxes with a pattern that matches `path`
    /// and, if `path` contains wildcards, mailboxes with a pattern that `path` matches. The cost grows with
    /// the number of trie nodes that the wildcards match.
    pub fn matching_broadcast(&self, path: &Path) -> Vec<Recipient> {
        let mut found: BTreeSet<Recipient> = self.matching(path).into_iter().collect();
        let segments: Vec<&str> = path.segments().collect();
        let mut reached = vec![false; segments.len() + 1];
        reached[0] = true;
        open_wildcards(&segments, &mut reached);
        self.root.cover(&segments, &reached, &mut found);
        found.into_iter().collect()
    }

    /// Every mailbox with a matching pattern, each once, in a fixed order.
    pub fn matching(&self, path: &Path) -> Vec<Recipient> {
        let mut search = TrieWalk::of(path);
        search.visit(&self.root, 1);
        let mut found = search.found;
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(|mailbox| Recipient { mailbox: mailbox.clone() }).collect()
    }
}

/// A walk over the nodes whose patterns match some prefix of a path. The lengths of these prefixes are at
/// most 32 and are stored as the bits of one word, so that a node is visited once, however many ways its `**`
/// can match.
struct TrieWalk<'node, 'path> {
    /// The segments other than `**` that a pattern can continue with, and a bit mask of their positions in
    /// the path; `*` has every position. A list, because most paths are short, and scanning a few entries is
    /// faster than hashing.
    segments: Vec<(&'path str, u64)>,
    /// Bit of the prefix that is the whole path.
    whole: u64,
    found: Vec<&'node Mailbox>,
}

impl<'node, 'path> TrieWalk<'node, 'path> {
    fn of(path: &'path Path) -> Self {
        let mut segments: Vec<(&str, u64)> = vec![("*", 0)];
        let mut whole = 1;
        for segment in path.segments() {
            segments[0].1 |= whole;
            match segments.iter_mut().find(|(existing, _)| *existing == segment) {
                Some((_, places)) => *places |= whole,
                None => segments.push((segment, whole)),
            }
            whole <<= 1;
        }
        Self { segments, whole, found: Vec::new() }
    }

    /// The prefixes that are matched when a pattern continues with this segment.
    fn after(&self, reached: u64, segment: &str) -> u64 {
        if segment == "**" {
            return self.after_globstar(reached);
        }
        let existing = self.segments.iter().find(|(existing, _)| *existing == segment);
        (reached & existing.map_or(0, |(_, places)| *places)) << 1
    }

    /// The prefixes matched after a `**`: the shortest one reached so far, and every longer one.
    fn after_globstar(&self, reached: u64) -> u64 {
        (reached | reached.wrapping_neg()) & ((self.whole << 1) - 1)
    }

    /// Collects the matches at and below a node. Returns the number of visited nodes: at each node it visits
    /// either all children or the possible next segments, whichever are fewer.
    fn visit(&mut self, node: &'node Node, reached: u64) -> usize {
        if reached == 0 {
            return 1;
        }
        if reached & self.whole != 0 {
            self.found.extend(&node.mailboxes);
        }
        let mut visited = 1;
        if node.children.len() <= self.segments.len() {
            for (segment, child) in &node.children {
                visited += self.visit(child, self.after(reached, segment));
            }
        } else {
            if let Some(child) = node.children.get("**") {
                visited += self.visit(child, self.after_globstar(reached));
            }
            for index in 0..self.segments.len() {
                let (segment, places) = self.segments[index];
                if reached & places != 0
                    && let Some(child) = node.children.get(segment)
                {
                    visited += self.visit(child, (reached & places) << 1);
                }
            }
        }
        visited
    }
}

/// Lets a `**` in the path of the broadcast match zero segments.
fn open_wildcards(segments: &[&str], reached: &mut [bool]) {
    for at in 0..segments.len() {
        if reached[at] && segments[at] == "**" {
            reached[at + 1] = true;
        }
    }
}

impl Node {
    /// Collects the mailboxes below this node whose patterns the path covers. `reached[i]`: the pattern of
    /// this node is matched by the first `i` segments of the path.
    fn cover(&self, segments: &[&str], reached: &[bool], found: &mut BTreeSet<Recipient>) {
        if reached[segments.len()] {
            found.extend(self.mailboxes.iter().map(|mailbox| Recipient { mailbox: mailbox.clone() }));
        }
        for (segment, child) in &self.children {
            let mut next = vec![false; segments.len() + 1];
            for at in (0..segments.len()).filter(|at| reached[*at]) {
                match segments[at] {
                    "**" => next[at] = true,
                    "*" => next[at + 1] = true,
                    plain => next[at + 1] |= plain == &**segment,
                }
            }
            open_wildcards(segments, &mut next);
            if next.contains(&true) {
                child.cover(segments, &next, found);
            }
        }
    }

    /// Removes a mailbox, and every node that is empty afterwards.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owner() -> UserId {
        UserId::stored("ann")
    }

    fn mailbox(name: usize) -> Mailbox {
        Mailbox::of(AgentId::stored(format!("a{name}")))
    }

    #[test]
    fn a_removed_agent_leaves_nothing_behind() {
        let mut routing_index = RoutingIndex::default();
        for pattern in ["slack/**", "**/x", "**/x"] {
            routing_index.add(&Pattern::parse(pattern).unwrap(), mailbox(1), &owner());
        }
        assert_eq!(routing_index.globstar_patterns_of(&owner()), 1);
        routing_index.apply(&RouteChange::RemoveAgent(mailbox(1).agent));
        assert!(
            routing_index.is_empty()
                && routing_index.root.children.is_empty()
                && routing_index.globstars.is_empty()
        );
        assert_eq!(routing_index.matching(&Path::parse("slack/x").unwrap()), []);
    }

    fn index_of(patterns: impl IntoIterator<Item = String>) -> RoutingIndex {
        let mut routing_index = RoutingIndex::default();
        for (index, pattern) in patterns.into_iter().enumerate() {
            routing_index.add(&Pattern::parse(&pattern).unwrap(), mailbox(index), &owner());
        }
        routing_index
    }

    /// Number of nodes that a lookup visits, and number of mailboxes that it finds.
    fn cost(routing_index: &RoutingIndex, path: &str) -> (usize, usize) {
        let path = Path::parse(path).unwrap();
        let mut search = TrieWalk::of(&path);
        (search.visit(&routing_index.root, 1), search.found.len())
    }

    #[test]
    fn unrelated_subscriptions_do_not_increase_the_cost_of_a_lookup() {
        let ordinary = |count: usize| {
            let patterns = (0..count).flat_map(|number| {
                let (team, channel) = (number / 100, number % 100);
                [
                    format!("slack/team-{team}/#{channel}"),
                    format!("slack/*/#{channel}-{team}"),
                    format!("email/**/from-{number}"),
                    format!("team-{team}/**"),
                ]
            });
            index_of(patterns)
        };
        let (few, many) = (ordinary(100), ordinary(20_000));
        for path in ["slack/team-0/#7", "email/to/from-7", "team-0/any/thing"] {
            let ((at_few, found), (at_many, as_many)) = (cost(&few, path), cost(&many, path));
            assert!(found > 0 && found == as_many, "{path}");
            assert!(at_many <= at_few.max(20), "{path}: {at_few} nodes, then {at_many}");
        }
    }

    #[test]
    fn partially_matching_patterns_are_each_visited_once() {
        let middle = |number: usize| {
            let middle = (0..10).map(|bit| if number >> bit & 1 == 1 { "*" } else { "a" });
            middle.collect::<Vec<_>>().join("/")
        };
        let hostile = (0..1000).map(|number| format!("**/{}/**/{}/b", middle(number), middle(number)));
        let routing_index = index_of(hostile);
        let (visited, found) = cost(&routing_index, &vec!["a"; 32].join("/"));
        assert_eq!(found, 0);
        // At most the number of nodes: the many positions at which a pattern could match add no cost.
        assert!(visited <= 1000 * 23, "{visited} nodes");
        assert_eq!(routing_index.globstar_patterns_of(&owner()), 1000);
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn a_broadcast_reaches_exactly_what_matches_in_either_direction(
            patterns in prop::collection::vec(prop::collection::vec("[ab]|\\*\\*?", 1..5), 1..12),
            path in prop::collection::vec("[ab]|\\*\\*?", 1..5),
            removed in 0usize..12,
        ) {
            let patterns: Vec<Pattern> =
                patterns.iter().filter_map(|segments| Pattern::parse(&segments.join("/")).ok()).collect();
            let path = Path::parse(&path.join("/")).unwrap();
            let mut routes = RoutingIndex::default();
            for (index, pattern) in patterns.iter().enumerate() {
                routes.add(pattern, mailbox(index), &owner());
            }
            if let Some(pattern) = patterns.get(removed) {
                routes.apply(&RouteChange::Remove { pattern: pattern.clone(), mailbox: mailbox(removed) });
            }
            let found: BTreeSet<_> = routes.matching_broadcast(&path).into_iter().map(|r| r.mailbox).collect();
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
            let mut routes = RoutingIndex::default();
            for (index, pattern) in patterns.iter().enumerate() {
                routes.add(pattern, mailbox(index), &owner());
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
