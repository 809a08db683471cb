'use strict';

// What a host that serves pictures would like to know of those who look at them. It keeps the answer to itself.
(() => {
  const seen = { path: location.pathname, width: innerWidth, language: navigator.language, pictures: 0 };
  addEventListener('load', () => {
    seen.pictures = document.querySelectorAll('img[src*="/pictures/"]').length;
    document.documentElement.dataset.visit = JSON.stringify(seen);
  });
})();
