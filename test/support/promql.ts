/** A series in a PromQL expression. */
export interface Selector {
  readonly name: string;
  readonly matchers: readonly { readonly label: string; readonly value: string }[];
}

/** The series and labels of an expression. */
export interface Spoken {
  readonly selectors: readonly Selector[];
  /** Labels for grouping, joining or excluding. */
  readonly labels: readonly string[];
}

type Token = { readonly kind: 'word' | 'text' | 'number' | 'mark'; readonly text: string };

const lexicon =
  /\s+|(?<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<variable>\$__?\w+)|(?<number>\d[\w.+]*)|(?<word>[A-Za-z_:][\w:]*)|(?<mark>=~|!~|!=|==|>=|<=|[-+*/%^=<>(){}[\],@])/y;

/** Keywords before a list of labels. */
const listing = new Set(['by', 'without', 'on', 'ignoring', 'group_left', 'group_right']);
/** Words that are not names of series. */
const operators = new Set([...listing, 'and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);

const isOperator = (word: string): boolean => operators.has(word.toLowerCase());
/** Whether the next tokens make the preceding word an aggregation: `sum by (…) (…)`. */
const isAggregation = (next = ''): boolean => /^(by|without)$/i.test(next);

/**
 * Parses the series and labels of an expression. Variables of Grafana count as durations.
 * @throws Error at an invalid token, and at unbalanced brackets
 */
export function speaksOf(expression: string): Spoken {
  const tokens = tokensOf(expression);
  checkBrackets(tokens, expression);
  const selectors: Selector[] = [];
  const labels: string[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    const { kind, text } = tokens[at] as Token;
    const next = tokens[at + 1]?.text;
    if (kind !== 'word') continue;
    if (listing.has(text.toLowerCase()) && next === '(') {
      const end = tokens.findIndex((token, index) => index > at && token.text === ')');
      for (const token of tokens.slice(at + 2, end))
        if (token.kind === 'word') labels.push(token.text);
      at = end;
    } else if (next === '{') {
      const end = tokens.findIndex((token, index) => index > at && token.text === '}');
      selectors.push({ name: text, matchers: matchersOf(tokens.slice(at + 2, end)) });
      at = end;
    } else if (next !== '(' && !isOperator(text) && !isAggregation(next)) {
      selectors.push({ name: text, matchers: [] });
    }
  }
  return { selectors, labels };
}

function tokensOf(expression: string): Token[] {
  const tokens: Token[] = [];
  lexicon.lastIndex = 0;
  while (lexicon.lastIndex < expression.length) {
    const at = lexicon.lastIndex;
    const groups = lexicon.exec(expression)?.groups;
    if (groups === undefined) throw new Error(`no PromQL at "${expression.slice(at, at + 20)}"`);
    const { text, variable, number, word, mark } = groups;
    if (text !== undefined) tokens.push({ kind: 'text', text });
    else if (variable !== undefined) tokens.push({ kind: 'number', text: variable });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word });
    else if (mark !== undefined) tokens.push({ kind: 'mark', text: mark });
  }
  return tokens;
}

function checkBrackets(tokens: readonly Token[], expression: string): void {
  const closing: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };
  const open: string[] = [];
  for (const { kind, text } of tokens) {
    if (kind !== 'mark') continue;
    const end = closing[text];
    if (end !== undefined) open.push(end);
    else if (Object.values(closing).includes(text) && open.pop() !== text) open.push('never');
  }
  if (open.length > 0) throw new Error(`brackets do not match: ${expression}`);
}

/** `label = "value", …` */
function matchersOf(tokens: readonly Token[]): Selector['matchers'] {
  const matchers: { label: string; value: string }[] = [];
  for (let at = 0; at < tokens.length; at += 4) {
    const [label, how, value] = tokens.slice(at, at + 3);
    const fits =
      label?.kind === 'word' && value?.kind === 'text' && /^(=|!=|=~|!~)$/.test(how?.text ?? '');
    if (!fits) throw new Error(`not a label matcher: ${tokens.map(({ text }) => text).join(' ')}`);
    matchers.push({ label: label.text, value: value.text.slice(1, -1) });
  }
  return matchers;
}
