import type { Request } from 'express';

const MAX_LABELS = 100;

/** Metrics labels of a route. */
export interface RouteLabel {
  /** Path below the extension: `/items/{id}`. */
  readonly endpoint: string;
  /** Path in the whole interface: `/ext/reports/items/{id}`. */
  readonly path: string;
}

/** Labels of an extension's routes, from a bounded set. A path from a client never becomes a label. */
export class RouteLabels {
  readonly #extensionId: string;
  readonly #known = new Map<string, RouteLabel>();
  readonly #other: RouteLabel;

  constructor(extensionId: string) {
    this.#extensionId = extensionId;
    this.#other = { endpoint: 'other', path: `/ext/${extensionId}` };
  }

  /** The label of a routed request, from the pattern of its route. Further routes beyond the limit are `other`. */
  of(request: Request): RouteLabel {
    const path: unknown = (request.route as { readonly path?: unknown } | undefined)?.path;
    if (typeof path !== 'string') return this.#other;
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    if (this.#known.size >= MAX_LABELS) return this.#other;
    const label = this.labelFor(path.replaceAll(/[:*](\w+)/g, '{$1}'));
    this.#known.set(path, label);
    return label;
  }

  /** @param endpoint a path, or a word for a request that reached none */
  labelFor(endpoint: string): RouteLabel {
    const below = endpoint.startsWith('/') ? endpoint : '';
    return { endpoint, path: `/ext/${this.#extensionId}${below}` };
  }
}
