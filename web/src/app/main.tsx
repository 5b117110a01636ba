import './styles/tokens.css'
import './styles/base.css'
import './styles/layout.css'
import '@/lib/ui/parts.css'
import '@/lib/ui/table.css'
import '@/lib/ui/definition-list.css'
import '@/lib/ui/dialog.css'

import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { signedIn, signIn, signInFromProvider } from '@/api/account'
import { toProblem } from '@/api/problem'
import type { CurrentUser } from '@/api/types'
import { followLink, ReplaceSession } from '@/features/session/replace-session'
import { SessionGate } from '@/features/session/session-gate'
import { signsIn, takeCallback, takeToken } from '@/lib/sign-in-address'
import { followTheme } from '@/lib/theme'

import { dashboardQueries } from './query-client'
import { dashboardRouter } from './router'

const container = document.getElementById('root')
if (container === null) throw new Error('index.html has no #root')
const page = createRoot(container)

const callback = takeCallback(window.location, window.history, window.sessionStorage)
const token = takeToken(window.location, window.history)
if (callback ?? token) page.render(<p className="signing-in">Signing in…</p>)
const ask = (me: CurrentUser) =>
  new Promise<boolean>((resolve) => {
    page.render(<ReplaceSession me={me} onChosen={resolve} />)
  })
const signing = callback
  ? signInFromProvider(callback)
  : token === null
    ? undefined
    : followLink({ signedIn, ask, signIn: () => signIn({ token }) })
const refused = await signing?.then(() => undefined, toProblem)

// A second such address pasted into the same tab changes the hash alone.
window.addEventListener('hashchange', () => {
  if (signsIn(window.location.hash)) window.location.reload()
})

followTheme()

const router = dashboardRouter()
const queryClient = dashboardQueries()
page.render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <SessionGate refused={refused}>
        <RouterProvider router={router} />
      </SessionGate>
    </QueryClientProvider>
  </StrictMode>,
)
