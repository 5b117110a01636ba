import type { CurrentUser } from '@/api/types'

interface Steps {
  /** The user whose session the browser has; undefined without one. */
  signedIn: () => Promise<CurrentUser | undefined>
  /** Whether the user wants the link to take the place of that session. */
  ask: (me: CurrentUser) => Promise<boolean>
  signIn: () => Promise<unknown>
}

/** Signs in by a link, but never in place of a session without having asked. */
export async function followLink({ signedIn, ask, signIn }: Steps): Promise<void> {
  const me = await signedIn()
  if (me === undefined || (await ask(me))) await signIn()
}
