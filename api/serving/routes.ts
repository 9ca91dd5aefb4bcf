/** A segment of a path: a literal, or a parameter with its name without the `:`. */
interface Segment {
  readonly text: string;
  readonly isParameter: boolean;
}

interface Route<T> {
  readonly path: string;
  readonly segments: readonly Segment[];
  /** By method, in upper case. */
  readonly methods: Map<string, T>;
}

/** The target of a request. */
export type FoundRoute<T> =
  | { readonly target: T; readonly parameters: Readonly<Record<string, string>> }
  /** The path exists, but only with other methods. */
  | { readonly target: null; readonly path: string; readonly methods: readonly string[] };

/**
 * Finds the target of a request by its path's segments. Express would try one pattern after the other, which takes
 * longer than reading a task. As in Express, the first match wins, case counts, and a trailing slash does not.
 */
export class Routes<T> {
  readonly #byLength = new Map<number, Route<T>[]>();

  /** @param path consists of literal segments and `:parameters` */
  add(method: string, path: string, target: T): void {
    const segments = path.slice(1).split('/').map(segmentOf);
    const routes = this.#byLength.get(segments.length) ?? [];
    this.#byLength.set(segments.length, routes);
    let route = routes.find((each) => each.path === path);
    if (route === undefined) routes.push((route = { path, segments, methods: new Map() }));
    route.methods.set(method, target);
  }

  /**
   * @param path the path of a request, without its query
   * @returns null for an unknown path; parameters as they were sent, percent-encoded
   */
  find(method: string, path: string): FoundRoute<T> | null {
    if (!path.startsWith('/')) return null;
    const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
    const sent = path.slice(1, end).split('/');
    // GET also answers HEAD: `node:http` leaves the body out.
    const wanted = method === 'HEAD' ? 'GET' : method;
    let other: Route<T> | undefined;
    for (const route of this.#byLength.get(sent.length) ?? []) {
      if (!matches(route, sent)) continue;
      const target = route.methods.get(wanted);
      if (target !== undefined) return { target, parameters: parametersOf(route, sent) };
      other ??= route;
    }
    return other === undefined
      ? null
      : { target: null, path: other.path, methods: [...other.methods.keys()] };
  }
}

function segmentOf(written: string): Segment {
  const isParameter = written.startsWith(':');
  return { text: isParameter ? written.slice(1) : written, isParameter };
}

function matches({ segments }: Route<unknown>, sent: readonly string[]): boolean {
  return segments.every(({ text, isParameter }, i) =>
    isParameter ? sent[i] !== '' : text === sent[i],
  );
}

function parametersOf(
  { segments }: Route<unknown>,
  sent: readonly string[],
): Readonly<Record<string, string>> {
  const parameters: Record<string, string> = {};
  segments.forEach(({ text, isParameter }, i) => {
    if (isParameter) parameters[text] = sent[i] ?? '';
  });
  return parameters;
}
