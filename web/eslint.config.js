import parser from '@babel/eslint-parser';
import reactHooks from 'eslint-plugin-react-hooks';
import effectReturn from './lint/effect-return.js';

// The parser of typescript-eslint needs the JavaScript API of TypeScript, which TypeScript 7 does not have.
function parsedBy(...plugins) {
  const babelOptions = { babelrc: false, configFile: false, parserOpts: { plugins } };
  return { parser, parserOptions: { requireConfigFile: false, babelOptions } };
}

export default [
  { ignores: ['dist/', 'screens/', 'src/generated/'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  { files: ['**/*.ts'], languageOptions: parsedBy('typescript') },
  { files: ['**/*.tsx'], languageOptions: parsedBy('typescript', 'jsx') },
  {
    files: ['src/**/*.{ts,tsx}'],
    plugins: { 'react-hooks': reactHooks, parlor: { rules: { 'effect-return': effectReturn } } },
    rules: {
      'react-hooks/rules-of-hooks': 'error',
      'react-hooks/exhaustive-deps': 'error',
      'parlor/effect-return': 'error',
    },
  },
];
