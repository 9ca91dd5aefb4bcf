import { posix } from 'node:path';
import { importsOf, isBarrel, type Import } from './imports.ts';
import { freeFolders, roomOf, type Room } from './rooms.ts';
import { scan, type Scanned, type Token } from './source-tokens.ts';

/** One violation of the architecture as a readable line: `domain/x.ts:3 imports 'express', …`. */
export type Violation = string;

/** Maximum length of a file in lines; a longer one does more than one thing. */
const MAX_LINES = 400;

const forbiddenFolders = new Set([
  'common',
  'helper',
  'helpers',
  'interfaces',
  'misc',
  'types',
  'util',
  'utils',
]);

/** All violations of one file. `path` is relative to the project, with forward slashes. */
export function checkFile(path: string, source: string): readonly Violation[] {
  const scanned = scan(source);
  const room = roomOf(path);
  const free = freeFolders.some((folder) => path.startsWith(folder));
  return [
    ...checkPlace(path, source, scanned, room !== undefined || free),
    ...checkWords(path, scanned, room),
    ...importsOf(scanned.tokens).flatMap((used) => checkImport(path, used, room)),
  ];
}

function checkPlace(
  path: string,
  source: string,
  { tokens }: Scanned,
  placed: boolean,
): readonly Violation[] {
  const found: Violation[] = [];
  const lines = source.replace(/\n$/, '').split('\n').length;
  const folders = path.split('/').slice(0, -1);
  const name = posix.basename(path);
  if (!placed) found.push(`${path} stands in no room of the design`);
  if (lines > MAX_LINES)
    found.push(`${path} has ${String(lines)} lines, over ${String(MAX_LINES)}`);
  for (const folder of folders.filter((each) => forbiddenFolders.has(each))) {
    found.push(`${path} stands in a folder named by syntax, not by meaning: ${folder}`);
  }
  // A test may name the adapter it runs with: `read-model.sqlite.test.ts`.
  if (!/^[a-z0-9]+(-[a-z0-9]+)*((\.[a-z0-9-]+)?\.test|\.d)?\.ts$/.test(name)) {
    found.push(`${path} is not named in kebab-case`);
  }
  if (name === 'index.ts' || isBarrel(tokens)) found.push(`${path} is a barrel`);
  return found;
}

function checkImport(path: string, used: Import, room: Room | undefined): readonly Violation[] {
  const { module } = used;
  const place = `${path}:${String(used.line)}`;
  if (module === null) {
    return room === undefined || room.computed === true
      ? []
      : [`${place} imports a module by a computed name`];
  }
  if (module.startsWith('.')) {
    const target = posix.normalize(posix.join(posix.dirname(path), module));
    if (!/\.(ts|json|mjs)$/.test(module))
      return [`${place} imports '${module}' without its ending`];
    if (room === undefined || room.inside.some((door) => isBehind(target, door))) return [];
    return [`${place} imports '${module}' (${target}), which ${room.path} may not`];
  }
  if (room === undefined || room.path.startsWith('app/')) return [];
  if (module.startsWith('node:')) {
    const allowed =
      room.node === 'all' || (room.node !== 'none' && room.node[path]?.includes(module) === true);
    return allowed ? [] : [`${place} imports '${module}', which ${room.path} may not`];
  }
  const allowed = room.packages.includes(packageOf(module));
  return allowed ? [] : [`${place} imports the package '${module}', which ${room.path} may not`];
}

function isBehind(target: string, door: string): boolean {
  return door.endsWith('/') ? target.startsWith(door) : target === door;
}

/** `@scope/name/part` → `@scope/name`; `name/part` → `name`. */
function packageOf(module: string): string {
  return module
    .split('/')
    .slice(0, module.startsWith('@') ? 2 : 1)
    .join('/');
}

/** The only file that may skip a test. */
const SKIPPING = 'test/support/left-out.ts';

/** Effects that must be passed to a pure room. */
const impure = new Set([
  'Date.now',
  'Math.random',
  'crypto.getRandomValues',
  'crypto.randomUUID',
  'performance.now',
]);
const impureCalls = new Set(['fetch', 'setImmediate', 'setInterval', 'setTimeout']);

function checkWords(
  path: string,
  { tokens, comments }: Scanned,
  room: Room | undefined,
): readonly Violation[] {
  const found: Violation[] = [];
  const say = (line: number, what: string): void => {
    found.push(`${path}:${String(line)} ${what}`);
  };
  for (const { text, line } of comments) {
    const mark = /@ts-(ignore|nocheck)|\b(TODO|FIXME|XXX)\b/.exec(text)?.[0];
    if (mark !== undefined) say(line, `has a comment with ${mark}`);
    if (room !== undefined && text.includes('@ts-expect-error')) say(line, 'expects a type error');
  }
  tokens.forEach((token, index) => {
    if (room !== undefined && isLengthAsInstant(tokens, index)) {
      say(token.line, 'takes a length of time for an instant: use after, for a clock may be set');
    }
    if (token.kind !== 'word' || tokens[index - 1]?.text === '.') return;
    if (isAnyType(tokens, index)) say(token.line, 'uses the type any');
    if (isMisnamedError(tokens, index)) {
      say(token.line, 'has an error class whose name does not end in Error');
    }
    const member = tokens[index + 1]?.text === '.' ? (tokens[index + 2]?.text ?? '') : '';
    const called = tokens[index + 1]?.text === '(';
    if (path.endsWith('.test.ts') && !path.startsWith('test/process/')) {
      if (token.text === 'setTimeout' && called) say(token.line, 'sleeps: a test waits on signals');
    }
    if (path.startsWith('test/') && path !== SKIPPING && isSkip(tokens, index)) {
      say(token.line, `skips a test: use leaveOut of ${SKIPPING}, which fails in CI`);
    }
    if (room === undefined || room.path.startsWith('app/')) return;
    if (token.text === 'console' && member !== '') say(token.line, `uses console.${member}`);
    if (token.text === 'process' && (member === 'env' || member === 'exit')) {
      say(token.line, `uses process.${member}, which only app/ may`);
    }
    if (room.pure !== true) return;
    if (impure.has(`${token.text}.${member}`) || (called && impureCalls.has(token.text))) {
      say(token.line, `uses ${token.text}, though ${room.path} has no clock, chance or I/O`);
    }
    const next = tokens.slice(index + 1, index + 4).map(({ text }) => text);
    if (token.text === 'new' && next[0] === 'Date' && (next[1] !== '(' || next[2] === ')')) {
      say(token.line, `asks for the time by new Date(), though ${room.path} has no clock`);
    }
  });
  return found;
}

/**
 * `at(clock.now() + …)`: if the clock is set back by an hour in the meantime, this fires an hour late.
 */
function isLengthAsInstant(tokens: readonly Token[], index: number): boolean {
  if (tokens[index]?.text !== 'at') return false;
  const call = tokens.slice(index + 1, index + 10).map(({ text }) => text);
  return /^\((this\.)?#?clock\.now\(\)\+/.test(call.join(''));
}

/** `this.skip`, `context.skip`, `it.skip`, `describe.skip`, `xit` or `xdescribe`. */
function isSkip(tokens: readonly Token[], index: number): boolean {
  const text = tokens[index]?.text ?? '';
  if (text === 'xit' || text === 'xdescribe') return true;
  return (
    ['this', 'context', 'it', 'describe'].includes(text) &&
    tokens[index + 1]?.text === '.' &&
    tokens[index + 2]?.text === 'skip'
  );
}

/** A class that extends `Error`, or a class named `…Error`, and has no name or one that does not end in `Error`. */
function isMisnamedError(tokens: readonly Token[], index: number): boolean {
  if (tokens[index]?.text !== 'class') return false;
  const body = tokens.findIndex(({ text }, at) => at > index && text === '{');
  const head = tokens.slice(index + 1, body).map(({ text }) => text);
  const parts = /^(\w+)?(?: <.*>)? ?extends (?:\w+ \. )*\w*Error\b/.exec(head.join(' '));
  return parts !== null && parts[1]?.endsWith('Error') !== true;
}

/** Punctuation and words after which `any` is a type. */
const beforeType = new Set([':', '<', '|', '&', ',', '=', '>', '(', '[']);
const beforeTypeWords = new Set(['as', 'extends', 'keyof', 'readonly', 'satisfies', 'is']);

function isAnyType(tokens: readonly Token[], index: number): boolean {
  const previous = tokens[index - 1];
  const next = tokens[index + 1]?.text;
  if (tokens[index]?.text !== 'any' || next === ':' || next === '(') return false;
  if (previous?.kind === 'mark') return beforeType.has(previous.text);
  return previous?.kind === 'word' && beforeTypeWords.has(previous.text);
}
