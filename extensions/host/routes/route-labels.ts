import type { Request } from 'express';

/** Routes of one extension that are labels of metrics by themselves; what comes after is `other`. */
const MOST_LABELS = 100;

/** A route of an extension, as metrics name it. */
export interface RouteLabel {
  /** Below the extension: `/items/{id}`. */
  readonly endpoint: string;
  /** Among those of the whole interface: `/ext/reports/items/{id}`. */
  readonly path: string;
}

/** The labels of an extension's routes: from a closed set, never a path as it was sent. */
export class RouteLabels {
  readonly #extensionId: string;
  readonly #known = new Map<string, RouteLabel>();
  readonly #other: RouteLabel;

  constructor(extensionId: string) {
    this.#extensionId = extensionId;
    this.#other = { endpoint: 'other', path: `/ext/${extensionId}` };
  }

  /** Of the route that has taken a request, by its pattern; once it has been led there. */
  of(request: Request): RouteLabel {
    const path: unknown = (request.route as { readonly path?: unknown } | undefined)?.path;
    if (typeof path !== 'string') return this.#other;
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    if (this.#known.size >= MOST_LABELS) return this.#other;
    const label = this.named(path.replaceAll(/[:*](\w+)/g, '{$1}'));
    this.#known.set(path, label);
    return label;
  }

  /** @param endpoint a path, or a word for what never came to one */
  named(endpoint: string): RouteLabel {
    const below = endpoint.startsWith('/') ? endpoint : '';
    return { endpoint, path: `/ext/${this.#extensionId}${below}` };
  }
}
