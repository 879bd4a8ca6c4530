/**
 * Rejects effects that return a value by accident.
 *
 * React calls whatever an effect returns as its cleanup function. `() => element.scrollIntoView()` was
 * harmless while browsers returned nothing; since Chromium returns a Promise from it, the cleanup throws and
 * the page goes blank. TypeScript accepts such an effect as long as its own declarations say `void`, so only
 * the syntax can be checked: an effect has a block body, or is `() => () => …`, and what it returns is
 * visibly a function.
 */

const EFFECTS = new Set(['useEffect', 'useLayoutEffect', 'useInsertionEffect']);

/** @type {import('eslint').Rule.RuleModule} */
export default {
  meta: {
    type: 'problem',
    docs: { description: 'require that effects return nothing or a cleanup function' },
    messages: {
      inline: 'Pass an inline function to {{hook}}, so that its return value can be checked.',
      async: 'The callback of {{hook}} returns {{what}}, which React would call as its cleanup function.',
      expression: 'The callback of {{hook}} returns the value of this expression as its cleanup function. Use a block body.',
      value: 'The callback of {{hook}} may return only a cleanup function, written as a function.',
    },
    schema: [],
  },
  create(context) {
    /**
     * Stack of the functions around the current node: the hook for an effect callback, otherwise `undefined`.
     */
    const functions = [];
    const enter = (node) => functions.push(hookOf(node));
    const leave = () => functions.pop();
    return {
      CallExpression(node) {
        const hook = nameOf(node.callee);
        const callback = node.arguments[0];
        if (hook === undefined || callback === undefined) return;
        if (!isFunction(callback)) return context.report({ node: callback, messageId: 'inline', data: { hook } });
        if (callback.async || callback.generator) {
          const what = callback.async ? 'a Promise' : 'an iterator';
          context.report({ node: callback, messageId: 'async', data: { hook, what } });
        } else if (callback.body.type !== 'BlockStatement' && !isFunction(callback.body)) {
          context.report({ node: callback.body, messageId: 'expression', data: { hook } });
        }
      },
      FunctionDeclaration: enter,
      FunctionExpression: enter,
      ArrowFunctionExpression: enter,
      'FunctionDeclaration:exit': leave,
      'FunctionExpression:exit': leave,
      'ArrowFunctionExpression:exit': leave,
      ReturnStatement(node) {
        const hook = functions.at(-1);
        if (hook === undefined || node.argument === null) return;
        if (!isCleanup(node.argument, context.sourceCode.getScope(node))) {
          context.report({ node: node.argument, messageId: 'value', data: { hook } });
        }
      },
    };
  },
};

/** Name of the effect hook whose callback this function is. */
function hookOf(node) {
  const { parent } = node;
  return parent?.type === 'CallExpression' && parent.arguments[0] === node ? nameOf(parent.callee) : undefined;
}

function nameOf(callee) {
  const name = callee.type === 'MemberExpression' && !callee.computed ? callee.property : callee;
  return name.type === 'Identifier' && EFFECTS.has(name.name) ? name.name : undefined;
}

function isFunction(node) {
  return node.type === 'ArrowFunctionExpression' || node.type === 'FunctionExpression';
}

function isCleanup(value, scope) {
  switch (value.type) {
    case 'ConditionalExpression':
      return isCleanup(value.consequent, scope) && isCleanup(value.alternate, scope);
    case 'Identifier':
      return value.name === 'undefined' || namesFunction(value.name, scope);
    default:
      return isFunction(value);
  }
}

/** Whether a name refers to a function declaration or to a constant with a function value. */
function namesFunction(name, scope) {
  for (let at = scope; at !== null; at = at.upper) {
    const definition = at.set.get(name)?.defs[0];
    if (definition === undefined) continue;
    if (definition.type === 'FunctionName') return true;
    const isConstant = definition.type === 'Variable' && definition.parent.kind === 'const';
    const { init, id } = definition.node;
    return isConstant && id.type === 'Identifier' && init !== null && init !== undefined && isFunction(init);
  }
  return false;
}
