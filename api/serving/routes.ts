/** Of a path as it is written: a text that must be there as it stands, or a parameter, which takes any one. */
type Segment = { readonly text: string } | { readonly parameter: string };

interface Route<T> {
  /** As it was written. */
  readonly path: string;
  readonly segments: readonly Segment[];
  /** By the method, in upper case. */
  readonly methods: Map<string, T>;
}

/** What a request was led to. */
export type Led<T> =
  | { readonly taker: T; readonly parameters: Readonly<Record<string, string>> }
  /** The path is there, with other methods. */
  | { readonly taker: null; readonly path: string; readonly methods: readonly string[] };

/**
 * Finds who takes a request, by its path's number of segments and then by each of them. Express would try one
 * pattern after the other through all that there are, which takes longer than reading a task does.
 *
 * What was added first is found first, as with Express; case counts, and a slash at the end does not.
 */
export class Routes<T> {
  readonly #bySegments = new Map<number, Route<T>[]>();

  /** @param path of texts and `:parameters` between slashes */
  add(method: string, path: string, taker: T): void {
    const segments = path.slice(1).split('/').map(segmentOf);
    const routes = this.#bySegments.get(segments.length) ?? [];
    this.#bySegments.set(segments.length, routes);
    let route = routes.find((each) => each.path === path);
    if (route === undefined) {
      route = { path, segments, methods: new Map() };
      routes.push(route);
    }
    route.methods.set(method, taker);
  }

  /**
   * @param path of a request, without its query
   * @returns null for a path that is not there; parameters as they were sent, percent-encoded
   */
  find(method: string, path: string): Led<T> | null {
    if (!path.startsWith('/')) return null;
    const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
    const parts = path.slice(1, end).split('/');
    // The taker of GET also answers HEAD: `node:http` leaves the body out.
    const wanted = method === 'HEAD' ? 'GET' : method;
    let other: Route<T> | undefined;
    for (const route of this.#bySegments.get(parts.length) ?? []) {
      if (!fits(route.segments, parts)) continue;
      const parameters = parametersOf(route.segments, parts);
      const taker = route.methods.get(wanted);
      if (taker !== undefined) return { taker, parameters };
      other ??= route;
    }
    return other === undefined
      ? null
      : { taker: null, path: other.path, methods: [...other.methods.keys()] };
  }
}

function segmentOf(text: string): Segment {
  return text.startsWith(':') ? { parameter: text.slice(1) } : { text };
}

function fits(segments: readonly Segment[], parts: readonly string[]): boolean {
  return segments.every((segment, i) =>
    'text' in segment ? segment.text === parts[i] : parts[i] !== '',
  );
}

function parametersOf(
  segments: readonly Segment[],
  parts: readonly string[],
): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {};
  segments.forEach((segment, i) => {
    if ('parameter' in segment) parameters[segment.parameter] = parts[i] ?? '';
  });
  return parameters;
}
