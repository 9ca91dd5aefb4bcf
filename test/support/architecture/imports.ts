import type { Token } from './source-tokens.ts';

/** An import of a file. `module` is null if its name is computed at run time. */
export interface Import {
  readonly module: string | null;
  readonly line: number;
}

/**
 * Every import of a file: static, re-exports, `import type`, `import('…')` as a call or in a type, and
 * `require('…')`.
 */
export function importsOf(tokens: readonly Token[]): readonly Import[] {
  const found: Import[] = [];
  tokens.forEach((token, index) => {
    if (token.kind !== 'word') return;
    const previous = tokens[index - 1];
    if (previous?.kind === 'mark' && previous.text === '.') return;
    const next = tokens[index + 1];
    if (token.text === 'import' && next?.kind === 'string') {
      found.push({ module: next.text, line: next.line });
    } else if ((token.text === 'import' || token.text === 'require') && next?.text === '(') {
      const argument = tokens[index + 2];
      const module = argument?.kind === 'string' ? argument.text : null;
      found.push({ module, line: token.line });
    } else if (token.text === 'import' || token.text === 'export') {
      const source = fromClause(tokens, index + 1);
      if (source !== undefined) found.push({ module: source.text, line: source.line });
    }
  });
  return found;
}

/** Whether a file only re-exports, which makes it a barrel. */
export function isBarrel(tokens: readonly Token[]): boolean {
  let index = 0;
  let reexports = 0;
  while (index < tokens.length) {
    const token = tokens[index];
    if (token?.text === ';') {
      index += 1;
      continue;
    }
    if (token?.kind !== 'word' || token.text !== 'export') return false;
    const source = fromClause(tokens, index + 1);
    if (source === undefined) return false;
    index = tokens.indexOf(source) + 1;
    reexports += 1;
  }
  return reexports > 0;
}

/** The module name of an import or export clause that starts at `start`, if there is one. */
function fromClause(tokens: readonly Token[], start: number): Token | undefined {
  let depth = 0;
  for (let index = start; index < tokens.length; index += 1) {
    const token = tokens[index];
    const next = tokens[index + 1];
    if (token === undefined) return undefined;
    if (token.text === 'from' && depth === 0 && next?.kind === 'string') return next;
    if (token.kind === 'mark' && token.text === '{') depth += 1;
    else if (token.kind === 'mark' && token.text === '}') depth -= 1;
    else if (token.kind === 'mark' && token.text !== ',' && token.text !== '*') return undefined;
    else if (token.kind !== 'word' && token.kind !== 'mark' && token.kind !== 'string') {
      return undefined;
    } else if (depth === 0 && declarationWords.has(token.text)) return undefined;
  }
  return undefined;
}

/** Keywords after `export` that declare something instead of re-exporting. */
const declarationWords = new Set([
  'abstract',
  'async',
  'class',
  'const',
  'declare',
  'default',
  'enum',
  'function',
  'interface',
  'let',
  'namespace',
  'var',
]);
