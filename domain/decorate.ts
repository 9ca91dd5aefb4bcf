/**
 * Decorates a port (the event log, the read model, the coordination store): replaces some methods and forwards all
 * others. The methods are looked up in the object itself, so new and optional methods are forwarded too.
 * @param port an object of any class; it stays unchanged
 * @param instead the replaced methods; an undefined one is forwarded
 */
export function decorate<T extends object>(port: T, instead: Partial<T>): T {
  const whole: Record<string, unknown> = {};
  for (let from: unknown = port; isObject(from) && from !== Object.prototype;) {
    for (const name of Object.getOwnPropertyNames(from)) {
      if (name === 'constructor' || Object.hasOwn(whole, name)) continue;
      const member: unknown = Reflect.get(port, name);
      if (typeof member === 'function') whole[name] = (member as () => unknown).bind(port);
    }
    from = Object.getPrototypeOf(from);
  }
  for (const [name, member] of Object.entries(instead)) {
    if (member !== undefined) whole[name] = member;
  }
  return whole as T;
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
