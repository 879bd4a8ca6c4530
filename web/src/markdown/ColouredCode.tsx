import { memo, useMemo } from 'react';
import { tokenize } from './highlight';

export default memo(function ColouredCode({ code, language }: { code: string; language: string }) {
  const tokens = useMemo(() => tokenize(code, language), [code, language]);
  if (tokens === undefined) return code;
  return tokens.map(({ text, tokenClass }, index) =>
    tokenClass === undefined ? (
      text
    ) : (
      <span key={index} className={`code-${tokenClass}`}>
        {text}
      </span>
    ),
  );
});
