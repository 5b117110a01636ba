import { chosenColumns } from './columns'

const KEY = 'ferret.columns'

/** Which columns this browser showed last, if anything but the usual was chosen. */
export function rememberedColumns(): string[] | undefined {
  try {
    return chosenColumns(window.localStorage.getItem(KEY) ?? undefined)
  } catch {
    return undefined // a browser that keeps nothing for this site
  }
}

/** Undefined: the usual ones again. */
export function rememberColumns(ids: readonly string[] | undefined): void {
  try {
    if (ids === undefined) window.localStorage.removeItem(KEY)
    else window.localStorage.setItem(KEY, ids.join(','))
  } catch {
    // The address still holds them.
  }
}
