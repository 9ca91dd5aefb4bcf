import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { ExtensionModule } from '../contract.ts';

/**
 * Imports an extension's module. When the service runs from its sources, built-in modules end in `.ts`.
 * @throws Error if it is missing or exports no function `setup`; the errors of the module itself
 */
export async function importModule(path: string): Promise<ExtensionModule> {
  const source = path.replace(/\.js$/, '.ts');
  const file = !existsSync(path) && existsSync(source) ? source : path;
  if (!existsSync(file)) throw new Error('its module is missing');
  const module = (await import(pathToFileURL(file).href)) as Partial<ExtensionModule>;
  if (typeof module.setup !== 'function')
    throw new Error('its module must export a function setup');
  return module as ExtensionModule;
}
