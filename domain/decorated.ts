/**
 * A port (the event log, the read model, the coordination store) in which some methods do something else and all others
 * go to the one behind it. They are found in the object itself, so that a method that is added to a port, or one that is
 * optional, is handed on without anybody thinking of it. A method that `instead` has as undefined is handed on too.
 *
 * The methods are bound once: what is handed on costs no more than a call.
 * @param port an object of any class; it stays as it is
 * @param instead the methods that differ
 */
export function decorated<T extends object>(port: T, instead: Partial<T>): T {
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
