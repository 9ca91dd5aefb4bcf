import type { ErrorObject } from 'ajv';

/** What a JSON schema says against a value, at a path of keys and indexes. */
export interface SchemaFault {
  readonly path: readonly string[];
  readonly issue: string;
  readonly keyword: string;
}

/** Words of one's own for a fault; undefined: the usual ones. */
export type OwnWords = (error: ErrorObject) => string | undefined;

interface Found extends SchemaFault {
  readonly schemaPath: string;
  /** What the value would have to be: names of types, or values. Both empty for a fault of another kind. */
  readonly types: readonly string[];
  readonly values: readonly unknown[];
}

/**
 * The faults that Ajv has found, all of them. Of a choice (`anyOf`) each branch says what the value is not, and then
 * the choice itself: told is what the branch says that the value was meant for, or all that it could have been.
 */
export function schemaFaults(
  errors: readonly ErrorObject[] | null | undefined,
  ownWords: OwnWords,
): readonly SchemaFault[] {
  const found: Found[] = [];
  for (const error of errors ?? []) {
    if (!isChoice(error)) {
      found.push(foundOf(error, ownWords));
      continue;
    }
    // One by one: as arguments of one call, a hundred thousand are too many.
    for (const each of chosen(takeBranches(found, error), error, ownWords)) found.push(each);
  }
  return found.map(({ path, issue, keyword }) => ({ path, issue, keyword }));
}

/** What is wrong with a value by a keyword that limits it, in words. */
export function limitWords({ keyword, params, message, parentSchema }: ErrorObject): string {
  const limit = String(params['limit']);
  switch (keyword) {
    case 'type':
      return `must be ${either([params['type']].flat().map(String))}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`;
    case 'minLength':
      return params['limit'] === 1 ? 'must not be empty' : `must have ${limit} characters or more`;
    case 'maxLength':
      return `must have at most ${limit} characters`;
    case 'minItems':
      return `must have ${limit} item${limit === '1' ? '' : 's'} or more`;
    case 'maxItems':
      return `must have at most ${limit} item${limit === '1' ? '' : 's'}`;
    case 'uniqueItems':
      return `has the same twice: items ${String(params['i'])} and ${String(params['j'])}`;
    case 'minimum':
      return `must be ${limit} or more`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'exclusiveMinimum':
      return `must be more than ${limit}`;
    case 'exclusiveMaximum':
      return `must be less than ${limit}`;
    case 'pattern':
    case 'format': {
      const description: unknown = parentSchema?.['description'];
      return typeof description === 'string' ? `must be ${description}` : String(message);
    }
    default:
      return message ?? 'is not as it should be';
  }
}

function isChoice({ keyword, params }: ErrorObject): boolean {
  return keyword === 'anyOf' || (keyword === 'oneOf' && params['passingSchemas'] === null);
}

/** Takes away what the branches of a choice have said, which was found last. */
function takeBranches(found: Found[], choice: ErrorObject): readonly Found[] {
  const place = pathOf(choice);
  const within = `${choice.schemaPath}/`;
  // The branches of the items of an array have the same path in the schema.
  const isOther = ({ schemaPath, path }: Found): boolean =>
    !schemaPath.startsWith(within) || place.some((key, index) => path[index] !== key);
  return found.splice(found.findLastIndex(isOther) + 1);
}

/** What the branches of a choice have said, as one. */
function chosen(said: readonly Found[], choice: ErrorObject, ownWords: OwnWords): readonly Found[] {
  if (said.length === 0) return [foundOf(choice, ownWords)];
  const place = pathOf(choice);
  const branches = new Map<string, Found[]>();
  for (const fault of said) {
    const [branch = ''] = fault.schemaPath.slice(choice.schemaPath.length + 1).split('/', 1);
    const known = branches.get(branch);
    if (known) known.push(fault);
    else branches.set(branch, [fault]);
  }
  // Of another kind, as a whole, than the branch is for.
  const strange = (fault: Found): boolean =>
    fault.path.length === place.length && fault.types.length + fault.values.length > 0;
  const meant = [...branches.values()].find((faults) => !faults.some(strange));
  if (meant) return meant;
  const types = new Set<string>();
  const values = new Set<unknown>();
  for (const faults of branches.values()) {
    const first = faults.find(({ path, types: ofOne }) => path.length === place.length && ofOne[0]);
    if (first) first.types.forEach((type) => types.add(type));
    else faults.filter(strange).forEach((fault) => fault.values.forEach((one) => values.add(one)));
  }
  const oneOf = values.size === 0 ? [] : [`one of ${[...values].map(String).join(', ')}`];
  return [
    {
      path: place,
      issue: `must be ${either([...types, ...oneOf])}`,
      keyword: values.size === 0 ? 'type' : 'enum',
      schemaPath: choice.schemaPath,
      types: [...types],
      values: [...values],
    },
  ];
}

function foundOf(error: ErrorObject, ownWords: OwnWords): Found {
  const { keyword, params, schemaPath } = error;
  const key: unknown = params['missingProperty'] ?? params['additionalProperty'];
  const path = pathOf(error);
  return {
    path: typeof key === 'string' ? [...path, key] : path,
    issue: ownWords(error) ?? limitWords(error),
    keyword,
    schemaPath,
    types: keyword === 'type' ? [params['type']].flat().map(String) : [],
    values:
      keyword === 'const'
        ? [params['allowedValue']]
        : keyword === 'enum'
          ? (params['allowedValues'] as unknown[])
          : [],
  };
}

function pathOf({ instancePath }: ErrorObject): readonly string[] {
  return instancePath
    .split('/')
    .slice(1)
    .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** `a`, `a or b`, `a, b or c` */
function either(parts: readonly string[]): string {
  const last = parts.at(-1) ?? '';
  return parts.length < 2 ? last : `${parts.slice(0, -1).join(', ')} or ${last}`;
}
