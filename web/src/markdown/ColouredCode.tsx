import { memo, useMemo } from 'react';
import { piecesOf } from './highlight';

export default memo(function ColouredCode({ code, language }: { code: string; language: string }) {
  const pieces = useMemo(() => piecesOf(code, language), [code, language]);
  if (pieces === undefined) return code;
  return pieces.map(({ text, look }, index) =>
    look === undefined ? (
      text
    ) : (
      <span key={index} className={`code-${look}`}>
        {text}
      </span>
    ),
  );
});
