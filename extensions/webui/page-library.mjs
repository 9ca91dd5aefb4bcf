// The page's libraries. The build puts this in place of `static/preact.js`, which the page's modules import, as browsers
// resolve no package names.

import htm from 'htm';
import { h } from 'preact';

export { options, render } from 'preact';
export {
  useEffect,
  useErrorBoundary,
  useId,
  useLayoutEffect,
  useMemo,
  useReducer,
  useRef,
  useState,
} from 'preact/hooks';

export const html = htm.bind(h);
