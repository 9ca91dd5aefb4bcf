import { _, type Ajv, type Code, type CodeKeywordDefinition } from 'ajv';

/**
 * Lets `minLength` and `maxLength` mean what they mean, characters, without counting them where the number of UTF-16
 * units already tells: Ajv counts every text for each of the two, which was half the cost of checking an event. Errors are those of Ajv, to the word and with its parameters.
 */
export function countCharactersRarely(ajv: Ajv): void {
  for (const definition of [maxLength, minLength]) {
    ajv.removeKeyword(String(definition.keyword));
    ajv.addKeyword(definition);
  }
}

/** What an error says of the bound, as Ajv's own does. */
const params = ({ schema }: { readonly schema?: unknown }): Code => _`{limit: ${Number(schema)}}`;

const maxLength: CodeKeywordDefinition = {
  keyword: 'maxLength',
  before: 'pattern',
  type: 'string',
  schemaType: 'number',
  error: { message: ({ schema }) => `must NOT have more than ${schema} characters`, params },
  code(cxt) {
    const most = Number(cxt.schema);
    const count = cxt.gen.scopeValue('func', { ref: charactersOf });
    cxt.fail(_`${cxt.data}.length > ${most} && ${count}(${cxt.data}) > ${most}`);
  },
};

const minLength: CodeKeywordDefinition = {
  keyword: 'minLength',
  before: 'pattern',
  type: 'string',
  schemaType: 'number',
  error: { message: ({ schema }) => `must NOT have fewer than ${schema} characters`, params },
  code(cxt) {
    const least = Number(cxt.schema);
    const count = cxt.gen.scopeValue('func', { ref: charactersOf });
    // A character has two units at most.
    cxt.fail(_`${cxt.data}.length < ${2 * least - 1} && ${count}(${cxt.data}) < ${least}`);
  },
};

/** Characters (code points) of a text; half of a pair that stands alone counts as one. */
function charactersOf(text: string): number {
  let characters = text.length;
  for (let at = 1; at < text.length; at += 1) {
    const isPair = isHigh(text.charCodeAt(at - 1)) && isLow(text.charCodeAt(at));
    if (!isPair) continue;
    characters -= 1;
    at += 1;
  }
  return characters;
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLow = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
