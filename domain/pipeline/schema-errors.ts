import type { ErrorObject } from 'ajv';

/** A violation of a JSON schema, at a path of keys and indexes. */
export interface SchemaError {
  readonly path: readonly string[];
  readonly issue: string;
  readonly keyword: string;
}

/** A custom message for an error; undefined keeps the default. */
export type CustomMessage = (error: ErrorObject) => string | undefined;

interface Found extends SchemaError {
  readonly schemaPath: string;
  /** The expected types or values; both empty for other errors. */
  readonly types: readonly string[];
  readonly values: readonly unknown[];
}

/**
 * All violations that Ajv found. For a choice (`anyOf`), Ajv reports every branch and then the
 * choice. This keeps only the violations of the branch that the value was meant for, or lists all
 * alternatives.
 */
export function schemaErrors(
  errors: readonly ErrorObject[] | null | undefined,
  customMessage: CustomMessage,
): readonly SchemaError[] {
  const found: Found[] = [];
  for (const error of errors ?? []) {
    if (!isChoice(error)) {
      found.push(foundOf(error, customMessage));
      continue;
    }
    // Pushed one by one: spreading a hundred thousand arguments overflows the stack.
    for (const each of mergeBranches(takeBranches(found, error), error, customMessage))
      found.push(each);
  }
  return found.map(({ path, issue, keyword }) => ({ path, issue, keyword }));
}

/** The message for a violated limit. */
export function limitMessage({ keyword, params, message, parentSchema }: ErrorObject): string {
  const limit = String(params['limit']);
  switch (keyword) {
    case 'type':
      return `must be ${either([params['type']].flat().map(String))}`;
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`;
    case 'minLength':
      return params['limit'] === 1 ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${limit} characters`;
    case 'minItems':
      return `must have at least ${limit} item${limit === '1' ? '' : 's'}`;
    case 'maxItems':
      return `must have at most ${limit} item${limit === '1' ? '' : 's'}`;
    case 'uniqueItems':
      return `must not have equal items (${String(params['i'])} and ${String(params['j'])})`;
    case 'minimum':
      return `must be at least ${limit}`;
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
      return message ?? 'is invalid';
  }
}

function isChoice({ keyword, params }: ErrorObject): boolean {
  return keyword === 'anyOf' || (keyword === 'oneOf' && params['passingSchemas'] === null);
}

/** Removes the violations of a choice's branches, which were found last. */
function takeBranches(found: Found[], choice: ErrorObject): readonly Found[] {
  const choicePath = pathOf(choice);
  const within = `${choice.schemaPath}/`;
  // Branches for different items of an array have the same schema path.
  const isOther = ({ schemaPath, path }: Found): boolean =>
    !schemaPath.startsWith(within) || choicePath.some((key, index) => path[index] !== key);
  return found.splice(found.findLastIndex(isOther) + 1);
}

/** Merges the violations of a choice's branches. */
function mergeBranches(
  said: readonly Found[],
  choice: ErrorObject,
  customMessage: CustomMessage,
): readonly Found[] {
  if (said.length === 0) return [foundOf(choice, customMessage)];
  const choicePath = pathOf(choice);
  const branches = new Map<string, Found[]>();
  for (const error of said) {
    const [branch = ''] = error.schemaPath.slice(choice.schemaPath.length + 1).split('/', 1);
    const known = branches.get(branch);
    if (known) known.push(error);
    else branches.set(branch, [error]);
  }
  // Whether the value as a whole has another type or value than the branch.
  const isMismatch = (error: Found): boolean =>
    error.path.length === choicePath.length && error.types.length + error.values.length > 0;
  const intended = [...branches.values()].find((errors) => !errors.some(isMismatch));
  if (intended) return intended;
  const types = new Set<string>();
  const values = new Set<unknown>();
  for (const errors of branches.values()) {
    const first = errors.find(
      ({ path, types: ofOne }) => path.length === choicePath.length && ofOne[0],
    );
    if (first) first.types.forEach((type) => types.add(type));
    else
      errors.filter(isMismatch).forEach((error) => error.values.forEach((one) => values.add(one)));
  }
  const oneOf = values.size === 0 ? [] : [`one of ${[...values].map(String).join(', ')}`];
  return [
    {
      path: choicePath,
      issue: `must be ${either([...types, ...oneOf])}`,
      keyword: values.size === 0 ? 'type' : 'enum',
      schemaPath: choice.schemaPath,
      types: [...types],
      values: [...values],
    },
  ];
}

function foundOf(error: ErrorObject, customMessage: CustomMessage): Found {
  const { keyword, params, schemaPath } = error;
  const key: unknown = params['missingProperty'] ?? params['additionalProperty'];
  const path = pathOf(error);
  return {
    path: typeof key === 'string' ? [...path, key] : path,
    issue: customMessage(error) ?? limitMessage(error),
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
