import parser from '@babel/eslint-parser';
import { RuleTester } from 'eslint';
import { describe, it } from 'vitest';
import effectReturn from '../lint/effect-return.js';

RuleTester.describe = describe;
RuleTester.it = it;

const babelOptions = { babelrc: false, configFile: false, parserOpts: { plugins: ['typescript', 'jsx'] } };
const rules = new RuleTester({ languageOptions: { parser, parserOptions: { requireConfigFile: false, babelOptions } } });

const invalid = (code: string, messageId: string) => ({ code, errors: [{ messageId }] });

rules.run('effect-return', effectReturn, {
  valid: [
    'useEffect(() => { list.current?.scrollIntoView(); }, [])',
    'useEffect(() => { void load(); }, [])',
    'useEffect(() => () => clearTimeout(timer.current), [])',
    'useEffect(() => { if (!isThere) return; focus(); }, [isThere])',
    'useEffect(() => { const timer = setTimeout(f); return () => clearTimeout(timer); }, [])',
    'useEffect(() => { const stop = () => undefined; return stop; }, [])',
    'useEffect(() => { return stop; function stop() {} }, [])',
    'useEffect(() => { return isThere ? () => leave() : undefined; }, [isThere])',
    'React.useLayoutEffect(function () { return function () { leave(); }; }, [])',
    // Functions inside and around an effect may return any value.
    'useEffect(() => { const size = () => { return 1; }; size(); }, [])',
    'useEffect(() => { rows.forEach((row) => row.measure()); }, [rows])',
    'function useSize() { useEffect(() => { measure(); }, []); return size; }',
    'useMemo(() => rows.length, [rows])',
    'const value: number = useMemo<number>(() => { return 1; }, [])',
  ],
  invalid: [
    invalid("useEffect(() => list.current?.scrollIntoView({ block: 'nearest' }), [found])", 'expression'),
    invalid('useLayoutEffect(() => grow(field.current), [content])', 'expression'),
    invalid('useInsertionEffect(() => insert(), [])', 'expression'),
    invalid('useEffect(() => void load(), [])', 'expression'),
    invalid('React.useEffect(() => store.subscribe(listen), [])', 'expression'),
    invalid('useEffect(() => { return store.subscribe(listen); }, [])', 'value'),
    invalid('useEffect(() => { if (isThere) return load(); }, [isThere])', 'value'),
    invalid('useEffect(() => { return isThere ? () => leave() : load(); }, [])', 'value'),
    invalid('useEffect(() => { const stop = subscribe(); return stop; }, [])', 'value'),
    invalid('useEffect(() => { let stop = () => undefined; stop = load(); return stop; }, [])', 'value'),
    invalid('useEffect(() => { return unknown; }, [])', 'value'),
    invalid('useEffect(async () => { await load(); }, [])', 'async'),
    invalid('useEffect(function* () { yield 1; }, [])', 'async'),
    invalid('useEffect(fetchOlder, [room])', 'inline'),
  ],
});
