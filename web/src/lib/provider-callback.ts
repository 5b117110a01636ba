const PATH = '/sign-in/callback'
const RETURN_TO = 'ferret.return-to'

interface Callback {
  state: string
  code: string | null
  error: string | null
  error_description: string | null
}

/**
 * Takes what the provider sent the browser back with out of the address, which is then that of the page that was left.
 * Null at any other address.
 */
export function takeCallback(location: Location, history: History, storage: Storage): Callback | null {
  if (location.pathname !== PATH) return null
  const given = new URLSearchParams(location.search)
  // Never another site's: a history has addresses of the same origin only.
  history.replaceState(null, '', storage.getItem(RETURN_TO) ?? '/')
  storage.removeItem(RETURN_TO)
  return {
    state: given.get('state') ?? '',
    code: given.get('code'),
    error: given.get('error'),
    error_description: given.get('error_description'),
  }
}

/** Notes the page to come back to from the provider. */
export function noteReturn(location: Location, storage: Storage): void {
  storage.setItem(RETURN_TO, location.pathname + location.search)
}
