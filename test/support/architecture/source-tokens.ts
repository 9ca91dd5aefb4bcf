/** A piece of TypeScript source. `text` of a string is its content without the quotes. */
export interface Token {
  readonly kind: 'word' | 'string' | 'template' | 'regex' | 'number' | 'mark';
  readonly text: string;
  /** From 1. */
  readonly line: number;
}

export interface Comment {
  readonly text: string;
  readonly line: number;
}

export interface Scanned {
  readonly tokens: readonly Token[];
  readonly comments: readonly Comment[];
}

/** Words after which a slash begins a regular expression and not a division. */
const beforeRegex = new Set(['return', 'typeof', 'case', 'in', 'of', 'void', 'delete', 'await']);

/** Punctuation after which a slash is a division. */
const beforeDivision = new Set([')', ']']);

const wordPattern = /[\p{ID_Start}$_#@][\p{ID_Continue}$]*/uy;
const numberPattern = /\d[\w.]*/y;
const spacePattern = /\s+/y;

/**
 * Splits source into tokens, well enough to tell code from comments and strings. TypeScript 7 has
 * no stable parser API, and the rules need only words, strings and their order. Code inside the
 * `${}` of a template is scanned like any other.
 */
export function scan(source: string): Scanned {
  const tokens: Token[] = [];
  const comments: Comment[] = [];
  /** For each open template: how many braces are open inside its present `${`. */
  const templates: number[] = [];
  let at = 0;
  let line = 1;

  const take = (end: number): string => {
    const text = source.slice(at, end);
    at = end;
    return text;
  };
  const push = (kind: Token['kind'], text: string, raw = text): void => {
    tokens.push({ kind, text, line });
    line += newlines(raw);
  };
  const template = (): void => {
    const end = templateEnd(source, at);
    const open = source.startsWith('${', end - 2) && !source.startsWith('\\', end - 3);
    const raw = take(end);
    push('template', raw, raw);
    if (open) templates.push(0);
  };

  while (at < source.length) {
    const char = source.charAt(at);
    const space = match(spacePattern, source, at);
    if (space !== undefined) {
      line += newlines(take(at + space.length));
    } else if (source.startsWith('//', at) || source.startsWith('#!', at)) {
      comments.push({ text: take(orEnd(source.indexOf('\n', at), source)), line });
    } else if (source.startsWith('/*', at)) {
      const close = source.indexOf('*/', at);
      const text = take(close === -1 ? source.length : close + 2);
      comments.push({ text, line });
      line += newlines(text);
    } else if (char === "'" || char === '"') {
      const raw = take(quotedEnd(source, at));
      push('string', raw.slice(1, -1), raw);
    } else if (char === '`') {
      at += 1;
      template();
    } else if (char === '}' && templates.at(-1) === 0) {
      templates.pop();
      at += 1;
      template();
    } else if (char === '/' && regexMayStart(tokens.at(-1))) {
      push('regex', take(regexEnd(source, at)));
    } else {
      const word = match(wordPattern, source, at);
      const number = match(numberPattern, source, at);
      if (word !== undefined) push('word', take(at + word.length));
      else if (number !== undefined) push('number', take(at + number.length));
      else {
        const depth = templates.length - 1;
        if (char === '{' && depth >= 0) templates[depth] = (templates[depth] ?? 0) + 1;
        if (char === '}' && depth >= 0) templates[depth] = (templates[depth] ?? 0) - 1;
        push('mark', take(at + 1));
      }
    }
  }
  return { tokens, comments };
}

function match(pattern: RegExp, source: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0];
}

function newlines(text: string): number {
  return text.split('\n').length - 1;
}

function orEnd(index: number, source: string): number {
  return index === -1 ? source.length : index;
}

function regexMayStart(previous: Token | undefined): boolean {
  if (previous === undefined) return true;
  if (previous.kind === 'word') return beforeRegex.has(previous.text);
  return previous.kind === 'mark' && !beforeDivision.has(previous.text);
}

/** The offset after the closing quote of the string that starts at `at`, or the end of its line. */
function quotedEnd(source: string, at: number): number {
  const quote = source.charAt(at);
  for (let index = at + 1; index < source.length; index += 1) {
    const char = source.charAt(index);
    if (char === '\\') index += 1;
    else if (char === quote) return index + 1;
    else if (char === '\n') return index;
  }
  return source.length;
}

/** The offset after the closing backtick or the next `${` of a template. */
function templateEnd(source: string, at: number): number {
  for (let index = at; index < source.length; index += 1) {
    const char = source.charAt(index);
    if (char === '\\') index += 1;
    else if (char === '`') return index + 1;
    else if (char === '$' && source.charAt(index + 1) === '{') return index + 2;
  }
  return source.length;
}

/** The offset after a regular expression; the next token includes its flags. */
function regexEnd(source: string, at: number): number {
  let inClass = false;
  for (let index = at + 1; index < source.length; index += 1) {
    const char = source.charAt(index);
    if (char === '\\') index += 1;
    else if (char === '[') inClass = true;
    else if (char === ']') inClass = false;
    else if (char === '\n') return index;
    else if (char === '/' && !inClass) return index + 1;
  }
  return source.length;
}
