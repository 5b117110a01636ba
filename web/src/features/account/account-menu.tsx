import './account.css'

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useId, useRef } from 'react'

import { covers, meQuery, signOut } from '@/api/account'
import { toProblem } from '@/api/problem'
import { toastFailure } from '@/lib/ui/toasts'

/** The signed-in user, with links to the service's pages and a button to sign out. */
export function AccountMenu() {
  const { data: me } = useQuery(meQuery)
  const queryClient = useQueryClient()
  const menu = useRef<HTMLDivElement>(null)
  const id = useId()
  const leave = async () => {
    try {
      await signOut()
    } catch (failure) {
      toastFailure('Signing out', toProblem(failure))
      return
    }
    await queryClient.resetQueries()
  }

  if (me === undefined) return null
  return (
    <div className="account-menu">
      <button type="button" className="button quiet" popoverTarget={id} data-testid="account-menu">
        {me.name} <span className="role">{me.role}</span>
      </button>
      <div ref={menu} id={id} popover="auto">
        <nav aria-label="Service" onClick={() => menu.current?.hidePopover()}>
          <Link to="/account">Your account</Link>
          <Link to="/alerts">Alerts</Link>
          {covers(me.role, 'admin') && (
            <>
              <Link to="/system">System</Link>
              <Link to="/people">People</Link>
            </>
          )}
        </nav>
        <button type="button" onClick={() => void leave()}>
          Sign out
        </button>
      </div>
    </div>
  )
}
