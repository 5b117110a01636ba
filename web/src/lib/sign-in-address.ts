/**
 * Takes the token out of an address such as `http://host/#ticket=…` (the one that `ferret serve` prints, good once) or
 * `#token=…`, and removes it from the address bar and the tab's history, so that it is neither bookmarked nor shared.
 * The browser's history keeps it, so a ticket works only once. Null without a ticket.
 */
export function takeToken(location: Location, history: History): string | null {
  const given = new URLSearchParams(location.hash.slice(1))
  const token = given.get('ticket') ?? given.get('token')
  if (token === null) return null
  history.replaceState(history.state, '', location.pathname + location.search)
  return token.trim()
}

/** True if an address with this hash signs in. */
export const signsIn = (hash: string): boolean => /^#(ticket|token)=/.test(hash)

const CALLBACK_PATH = '/sign-in/callback'
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
  if (location.pathname !== CALLBACK_PATH) return null
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
