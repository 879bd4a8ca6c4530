/** Common emoji by name, for completion. */
export const EMOJI: readonly (readonly [string, string])[] = [
  ['thumbsup', '👍'], ['+1', '👍'], ['thumbsdown', '👎'], ['heart', '❤️'], ['smile', '😄'], ['grin', '😁'], ['joy', '😂'],
  ['slight_smile', '🙂'], ['wink', '😉'], ['blush', '😊'], ['heart_eyes', '😍'], ['thinking', '🤔'], ['sweat_smile', '😅'],
  ['cry', '😢'], ['sob', '😭'], ['angry', '😠'], ['scream', '😱'], ['sleeping', '😴'], ['sunglasses', '😎'], ['nerd', '🤓'],
  ['party', '🥳'], ['tada', '🎉'], ['clap', '👏'], ['pray', '🙏'], ['wave', '👋'], ['muscle', '💪'], ['ok_hand', '👌'],
  ['eyes', '👀'], ['fire', '🔥'], ['rocket', '🚀'], ['star', '⭐'], ['sparkles', '✨'], ['bulb', '💡'], ['zap', '⚡'],
  ['check', '✅'], ['x', '❌'], ['warning', '⚠️'], ['question', '❓'], ['exclamation', '❗'], ['hundred', '💯'],
  ['coffee', '☕'], ['tea', '🍵'], ['beer', '🍺'], ['pizza', '🍕'], ['cake', '🍰'], ['apple', '🍎'], ['bug', '🐛'],
  ['cat', '🐱'], ['dog', '🐶'], ['robot', '🤖'], ['ghost', '👻'], ['sun', '☀️'], ['rain', '🌧️'], ['snow', '❄️'],
  ['lock', '🔒'], ['key', '🔑'], ['mag', '🔍'], ['memo', '📝'], ['calendar', '📅'], ['clock', '🕐'], ['hourglass', '⏳'],
  ['link', '🔗'], ['gear', '⚙️'], ['wrench', '🔧'], ['hammer', '🔨'], ['package', '📦'], ['pin', '📌'], ['chart', '📈'],
];
