import {
  createBrowserHistory,
  createRootRoute,
  createRoute,
  createRouter,
  type ErrorComponentProps,
  lazyRouteComponent,
  Link,
  type RouterHistory,
} from '@tanstack/react-router'

import { parseAdminUrl } from '@/features/admin/url-state'
import { parseAlertsUrl } from '@/features/alerts/url-state'
import { parseCompareUrl } from '@/features/compare/url-state'
import { ExperimentPage } from '@/features/experiment/experiment-page'
import { parseExperimentUrl } from '@/features/experiment/url-state'
import { ExperimentsPage } from '@/features/experiments/experiments-page'
import { parseExperimentListUrl } from '@/features/experiments/url-state'
import { parseSubmitUrl } from '@/features/submit/url-state'
import { parseSystemUrl } from '@/features/system/url-state'
import { parseSearch, stringifySearch } from '@/lib/search-params'
import { ProblemNotice } from '@/lib/ui/notice'

import { Shell } from './shell'

// Few visits need these pages, so their code loads with the first visit that does.
const AccountPage = lazyRouteComponent(() => import('@/features/account/account-page'), 'AccountPage')
const ComparePage = lazyRouteComponent(() => import('@/features/compare/compare-page'), 'ComparePage')
const SubmitPage = lazyRouteComponent(() => import('@/features/submit/submit-page'), 'SubmitPage')

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const experiments = createRoute({
  getParentRoute: () => root,
  path: '/',
  validateSearch: parseExperimentListUrl,
  component: function Experiments() {
    const navigate = experiments.useNavigate()
    return (
      <ExperimentsPage
        view={experiments.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const experiment = createRoute({
  getParentRoute: () => root,
  path: '/experiments/$id',
  validateSearch: parseExperimentUrl,
  component: function Experiment() {
    const { id } = experiment.useParams()
    const navigate = experiment.useNavigate()
    return (
      <ExperimentPage
        key={id}
        id={id}
        view={experiment.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const compare = createRoute({
  getParentRoute: () => root,
  path: '/compare',
  validateSearch: parseCompareUrl,
  component: function Compare() {
    const navigate = compare.useNavigate()
    return (
      <ComparePage
        view={compare.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const submit = createRoute({
  getParentRoute: () => root,
  path: '/new',
  validateSearch: parseSubmitUrl,
  component: function Submit() {
    const navigate = submit.useNavigate()
    return (
      <SubmitPage
        view={submit.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

/** Pages for operators, which most users never open. */
const SystemPage = lazyRouteComponent(() => import('@/features/system/system-page'), 'SystemPage')

const system = createRoute({
  getParentRoute: () => root,
  path: '/system',
  validateSearch: parseSystemUrl,
  component: function System() {
    const navigate = system.useNavigate()
    return (
      <SystemPage
        view={system.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const AlertsPage = lazyRouteComponent(() => import('@/features/alerts/alerts-page'), 'AlertsPage')

const alerts = createRoute({
  getParentRoute: () => root,
  path: '/alerts',
  validateSearch: parseAlertsUrl,
  component: function Alerts() {
    const navigate = alerts.useNavigate()
    return (
      <AlertsPage
        view={alerts.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const AdminPage = lazyRouteComponent(() => import('@/features/admin/admin-page'), 'AdminPage')

const admin = createRoute({
  getParentRoute: () => root,
  path: '/people',
  validateSearch: parseAdminUrl,
  component: function Admin() {
    const navigate = admin.useNavigate()
    return (
      <AdminPage
        view={admin.useSearch()}
        onView={(search) => void navigate({ search, replace: true, resetScroll: false })}
      />
    )
  },
})

const account = createRoute({ getParentRoute: () => root, path: '/account', component: AccountPage })

function NotFound() {
  return (
    <main className="page">
      <section className="empty">
        <h1>No such page</h1>
        <p>
          <Link to="/">See all experiments</Link>
        </p>
      </section>
    </main>
  )
}

const routeTree = root.addChildren([experiments, experiment, compare, submit, alerts, system, admin, account])

/** Routes by the browser's own history, or by the one that a test hands in. */
export function dashboardRouter(history: RouterHistory = createBrowserHistory()) {
  return createRouter({
    routeTree,
    history,
    parseSearch,
    stringifySearch,
    scrollRestoration: true,
    defaultErrorComponent: BrokenPage,
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof dashboardRouter>
  }
}

/** Replaces a page that cannot be drawn, for example because an answer has an unexpected shape. */
function BrokenPage({ error }: ErrorComponentProps) {
  const detail = error instanceof Error ? error.message : String(error)
  return (
    <main className="page narrow">
      <ProblemNotice problem={{ code: 'page.broken', title: 'This page cannot be shown', detail, errors: [] }}>
        <button
          type="button"
          className="button"
          onClick={() => {
            window.location.reload()
          }}
        >
          Reload
        </button>
      </ProblemNotice>
    </main>
  )
}
