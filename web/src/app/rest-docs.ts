import 'swagger-ui-dist/swagger-ui.css'

import './styles/rest-docs.css'

import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js'

const { dataset, classList } = document.documentElement
classList.toggle('dark-mode', dataset.theme === 'dark')

SwaggerUI({
  dom_id: '#docs',
  url: '/api/v1/openapi.json',
  validatorUrl: null, // it would send the document elsewhere
  deepLinking: false, // links within buttons, which no screen reader can press
  displayOperationId: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
})
