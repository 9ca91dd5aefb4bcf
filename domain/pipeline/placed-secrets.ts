import { PipelineError } from './pipeline-error.ts';

/** The rule that is quoted whenever a use of a secret is rejected. */
export const SECRET_RULE =
  'a secret is used whole, as ${secrets.NAME}, in the url, query, headers or body of http.request, ' +
  'or in an argument that its tool marks x-secret';

/**
 * The object `secrets` of expressions. Only a placeholder, `${secrets.NAME}`, reads it, and only where the step's tool
 * takes the secret. An expression that reads it fails: functions would undo the masking.
 */
export class PlacedSecrets {
  readonly #values: ReadonlyMap<string, string>;

  constructor(values: ReadonlyMap<string, string> = new Map()) {
    this.#values = values;
  }

  /** The value for a placeholder. @throws PipelineError if the secret may not be used there */
  place(name: string): string {
    const value = this.#values.get(name);
    if (value === undefined) {
      throw new PipelineError(`the secret ${name} cannot be used here: ${SECRET_RULE}`);
    }
    return value;
  }
}

/** The `secrets` of every expression that places none. */
export const noPlacedSecrets = new PlacedSecrets();
