//! Classification of characters that are invisible or that change how the surrounding text is displayed.

/// Returns whether `c` is a control character, a line separator or a bidirectional text control.
pub fn is_deceptive(c: char) -> bool {
    let bidi_control =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || bidi_control || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Returns whether `c` is visible on its own. Joiners and similar characters are allowed within a name, but a
/// name must not consist of them alone.
pub fn is_visible(c: char) -> bool {
    let ignorable = matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}'
    );
    !c.is_whitespace() && !is_deceptive(c) && !ignorable
}
